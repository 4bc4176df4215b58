"""Runs the failure recorder of a manager with the controllers' caches and a separate client.

It has its own connections and limits, so that reconciles never wait for it. Its failures are logged.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Final

import structlog

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.errors import KubeError
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.indexes import LEADERWORKERSET_CACHE, REVISION_CACHE
from leaderworkerset.kinds.recordercaches import POD_CACHE
from leaderworkerset.manager.config import configuration
from leaderworkerset.recording.configmapstore import MEBIBYTE, ConfigMapStore
from leaderworkerset.recording.logsource import ApiLogs
from leaderworkerset.recording.progressfollower import ProgressFollower
from leaderworkerset.recording.recorder import Recorder

QPS: Final = 200.0
BURST: Final = 400
"""The rate limit and burst of the client. They are sufficient for two attempts to read the logs of 100 ranks."""

RETRY: Final = 30.0
"""The delay in seconds before retrying to read the existing episodes."""

PERIOD: Final = 3600.0
"""The interval in seconds for removing old episodes."""

PROGRESS_PACE: Final = 10.0
"""The minimum interval in seconds between progress updates of one leader."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class FlightRecorder:
    """Records failures in ConfigMaps while this replica is the leader."""

    def __init__(self, caches: Caches, client: Client, clock: Clock, settings: configuration.RecorderSettings) -> None:
        self._caches = caches
        self._client = client
        self._clock = clock
        self._store = ConfigMapStore(
            client,
            max_per_set=settings.mebibytes_per_set * MEBIBYTE,
            max_total=settings.mebibytes * MEBIBYTE,
            retention=timedelta(seconds=settings.keep_for),
        )

    async def run(self) -> None:
        """Record until cancelled."""
        while True:
            if await self._try("failed to read episodes", self._store.open()):
                break
            await asyncio.sleep(RETRY)
        recorder = Recorder(self._client, self._store, ApiLogs(self._client), self._clock, reads_secrets=False)
        async with asyncio.TaskGroup() as tasks:
            pods, records = self._caches[POD_CACHE], self._caches[REVISION_CACHE]
            tasks.create_task(recorder.run(pods, records, asyncio.Event()))
            follower = ProgressFollower(self._client, self._clock, pace=PROGRESS_PACE)
            tasks.create_task(follower.run(pods, self._caches[LEADERWORKERSET_CACHE]))
            tasks.create_task(self._expire())

    async def _expire(self) -> None:
        while True:
            await self._try("failed to delete old episodes", self._store.expire(self._clock.now()))
            await asyncio.sleep(PERIOD)

    async def _try(self, failure: str, work: Awaitable[None]) -> bool:
        """Return whether an action succeeded. API server errors are logged."""
        try:
            await work
        except KubeError as error:
            log.warning(failure, error=str(error))
            return False
        return True
