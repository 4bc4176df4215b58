"""Removes the pod admission policy after a manager without support for the policy becomes the leader.

Otherwise the policy of a previous release could stay, which no manager maintains.
"""

import asyncio
from typing import Final

import structlog

from kuberuntime.backoff import Backoff
from kuberuntime.client.client import Client
from kuberuntime.errors import ForbiddenError, KubeError
from leaderworkerset.api import metadata
from leaderworkerset.core.admission import podpolicy

RETRY: Final = Backoff(base=1.0, limit=60.0)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class PolicyRemoval:
    """Deletes the policy objects, if they exist, while the controllers are running."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def run(self) -> None:
        """Delete the objects, and retry until the API server responds."""
        failures = 0
        while True:
            try:
                await self._remove()
            except ForbiddenError as error:
                log.info("failed to read the pod admission policy", error=str(error))
                return
            except KubeError as error:
                failures += 1
                log.debug("failed to delete the pod admission policy", error=str(error))
                await asyncio.sleep(RETRY.delay(failures))
            else:
                return

    async def _remove(self) -> None:
        """Delete the binding before the policy, because the policy has no effect without the binding."""
        for kind in reversed(podpolicy.KINDS):
            obj = await self._client.find(kind, podpolicy.KEY)
            if obj is not None and metadata.is_installed(obj):
                await self._client.delete(kind, podpolicy.KEY)
                log.info("deleted the pod admission policy", kind=kind.kind, name=podpolicy.NAME)
