"""Detects available gang schedulers by polling, because CRDs can be added or deleted at any time.

`auto` depends on the result, and `spec.scheduling` is rejected if its kinds are not served. Every replica polls,
because each replica serves webhooks. It serves webhooks only after the first response, because a pod that is admitted
before would never be linked to its group.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

import structlog

from kuberuntime.client.client import Client
from kuberuntime.errors import KubeError
from leaderworkerset.core.gang.gangs import AUTO, DETECTABLE, SCHEDULING, served_name
from leaderworkerset.core.gang.native import KUBERNETES, NATIVE
from leaderworkerset.manager.components import run_in_background
from leaderworkerset.manager.kubernetesversions import is_served

DETECTING: Final = (AUTO, KUBERNETES, NATIVE.name)
"""The configured names for which admission depends on the served kinds."""

PERIOD: Final = 30.0
"""The polling interval in seconds."""

RETRY: Final = 1.0
"""The polling interval in seconds after a failure, while the served kinds are unknown."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GangDetection:
    """Polls the available providers as a component of a process (`components.py`).

    The webhook thread also reads them.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: Collection[str] | None = None
        self._known = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Return whether the API server has responded at least once."""
        return self._known.is_set()

    async def wait_until_known(self) -> None:
        """Wait until the API server has responded at least once."""
        await self._known.wait()

    def wait_for_providers(self) -> Collection[str]:
        """Wait until the available providers and kinds are known, and return their names."""
        assert self._served is not None  # noqa: S101 - webhooks, which ask, are served later
        return self._served

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Poll while the context is active."""
        async with run_in_background(self._poll()):
            yield

    async def drain(self) -> None:
        """Continue polling, because webhooks are served for some time after a stop."""

    async def _poll(self) -> None:
        while True:
            try:
                served = await detect(self._client)
            except KubeError as error:
                report = log.debug if self._client.has_reported(error) else log.warning
                report("failed to detect gang schedulers", error=str(error))
            else:
                if served != self._served:
                    log.info("gang schedulers detected", served=sorted(served))
                self._served = served
                self._known.set()
            await asyncio.sleep(PERIOD if self.is_ready else RETRY)


async def detect(client: Client) -> frozenset[str]:
    """Return the names of the gang scheduling kinds that the API server serves."""
    kinds = [(name, kind) for name, provider in DETECTABLE.items() for kind in provider.group_objects]
    kinds += [(served_name(kind), kind) for kind in SCHEDULING]
    return frozenset([name for name, kind in kinds if await is_served(client, kind)])
