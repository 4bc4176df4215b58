"""Removes the policy that admits pods, once a manager leads whose configuration does not allow it.

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
    """Deletes the objects of the policy, if there are any, as a part next to the controllers."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def run(self) -> None:
        """Delete the objects; try again until the API server responds."""
        failures = 0
        while True:
            try:
                await self._remove()
            except ForbiddenError as error:
                log.info("the policy of pods cannot be read", error=str(error))
                return
            except KubeError as error:
                failures += 1
                log.debug("the policy of pods was not removed", error=str(error))
                await asyncio.sleep(RETRY.delay(failures))
            else:
                return

    async def _remove(self) -> None:
        """Delete the binding before the policy, without which it has no effect."""
        for kind in reversed(podpolicy.KINDS):
            obj = await self._client.find(kind, podpolicy.KEY)
            if obj is not None and metadata.is_installed(obj):
                await self._client.delete(kind, podpolicy.KEY)
                log.info("removed the policy of pods", kind=kind.kind, name=podpolicy.NAME)
