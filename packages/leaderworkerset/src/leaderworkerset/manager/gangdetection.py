"""Detects the gang schedulers that the API server serves, by polling: definitions may be added or deleted at any time.

`auto` depends on the result, and `spec.scheduling` is refused if its kinds are not served. Every replica polls, because
each answers webhooks. It serves webhooks only after its first answer: a pod that is admitted before would stay without
its group forever.
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
from leaderworkerset.manager.kubernetesversions import is_served
from leaderworkerset.manager.parts import background

DETECTING: Final = (AUTO, KUBERNETES, NATIVE.name)
"""The configured names for which admission depends on the served kinds."""

PERIOD: Final = 30.0
"""Seconds between two polls."""

RETRY: Final = 1.0
"""Seconds until the next poll after a failure, while nothing is known."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GangDetection:
    """Polls which providers are served, as a part of a process (`parts.py`); the thread of webhooks also reads it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._served: Collection[str] | None = None
        self._known = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Return whether the API server has answered once."""
        return self._known.is_set()

    async def known(self) -> None:
        """Wait until the API server has answered once."""
        await self._known.wait()

    def served(self) -> Collection[str]:
        """Return the names of the served providers and kinds, once they are known."""
        assert self._served is not None  # noqa: S101 - webhooks, which ask, are served later
        return self._served

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Poll inside the context."""
        async with background(self._follow()):
            yield

    async def drain(self) -> None:
        """Continue to poll: webhooks are answered a little longer."""

    async def _follow(self) -> None:
        while True:
            try:
                served = await detect(self._client)
            except KubeError as error:
                report = log.debug if self._client.has_reported(error) else log.warning
                report("gang schedulers not detected", error=str(error))
            else:
                if served != self._served:
                    log.info("gang schedulers detected", served=sorted(served))
                self._served = served
                self._known.set()
            await asyncio.sleep(PERIOD if self.is_ready else RETRY)


async def detect(client: Client) -> frozenset[str]:
    """Read the kinds of every provider's group, and of `spec.scheduling`; return the names of the served ones."""
    kinds = [(name, kind) for name, provider in DETECTABLE.items() for kind in provider.group_objects]
    kinds += [(served_name(kind), kind) for kind in SCHEDULING]
    return frozenset([name for name, kind in kinds if await is_served(client, kind)])
