"""The loop of the embedded controllers: from changes to keys, from keys to looks, each look by one worker.

As `kube.controller`, but a look acts through a `Session`, because these controllers patch, write at the same time and
need answers in between. A key is not looked at again before the caches show what its last look wrote.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

import structlog

from leaderworkerset.api.meta import ObjectKey
from leaderworkerset.embedded.controllers.session import Session
from leaderworkerset.embedded.controllers.workers import Workers
from leaderworkerset.kube.barrier import Barrier
from leaderworkerset.kube.controller import Watch
from leaderworkerset.kube.informer import Change
from leaderworkerset.kube.workqueue import WorkQueue

Look: TypeAlias = Callable[[ObjectKey, Session], Awaitable[float | None]]
"""Looks at one key and acts; returns in how many seconds to look again without being asked."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Reconciler:
    """Calls `look` for every key the watches name, until all of it is as it should be."""

    def __init__(
        self,
        name: str,
        *,
        watches: Sequence[Watch],
        look: Look,
        session: Callable[[], Session],
        workers: int = 4,
    ) -> None:
        self._watches = watches
        self._look = look
        self._session = session
        self._log = log.bind(controller=name)
        self._queue = WorkQueue[ObjectKey]()
        self._workers = Workers(name, self._queue, self._attend, count=workers)
        self._waiting: set[ObjectKey] = set()
        self._barrier = Barrier({watch.informer for watch in watches}, self._released)

    async def run(self) -> None:
        """Work until cancelled; begin when all watched informers have synced."""
        for watch in self._watches:
            watch.informer.subscribe(partial(self._changed, watch))
        for watch in self._watches:
            await watch.informer.wait_synced()
        try:
            await self._workers.run()
        finally:
            self._barrier.close()

    def _changed(self, watch: Watch, change: Change) -> None:
        try:
            for key in watch.keys(change):
                self._queue.add(key)
        except Exception:  # noqa: BLE001 - loop edge: an object nobody foresaw must not stop the informer
            self._log.exception("cannot tell whom a change concerns", resource=watch.informer.resource.group_resource)

    def _released(self, key: ObjectKey) -> None:
        if key in self._waiting:
            self._waiting.discard(key)
            self._queue.add(key)

    async def _attend(self, key: ObjectKey) -> float | None:
        """Look at one key, unless the caches lag behind its last writes; then it comes again."""
        if self._barrier.holds(key):
            self._waiting.add(key)
            return None
        session = self._session()
        try:
            return await self._look(key, session)
        finally:
            self._barrier.expect(key, session.writes)
