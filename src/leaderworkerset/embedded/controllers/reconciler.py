"""The loop of the embedded controllers: from changes to keys, from keys to looks, each look by one worker.

As `kube.controller`, but a look acts through a `Session`, because these controllers patch, write at the same time and
need answers in between. A key is not looked at again before the caches show what its last look wrote.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias

import structlog

from leaderworkerset.api.meta import ObjectKey
from leaderworkerset.embedded.controllers.session import Session
from leaderworkerset.kube.barrier import Barrier
from leaderworkerset.kube.controller import Watch
from leaderworkerset.kube.errors import Conflict, KubeError
from leaderworkerset.kube.executor import LookAgain
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
        self.name = name
        self._watches = watches
        self._look = look
        self._session = session
        self._workers = workers
        self._log = log.bind(controller=name)
        self._queue = WorkQueue[ObjectKey]()
        self._waiting: set[ObjectKey] = set()
        self._barrier = Barrier({watch.informer for watch in watches}, self._released)

    async def run(self) -> None:
        """Work until cancelled; begin when all watched informers have synced."""
        for watch in self._watches:
            watch.informer.subscribe(partial(self._changed, watch))
        for watch in self._watches:
            await watch.informer.wait_synced()
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._workers):
                    group.create_task(self._work(), name=f"{self.name}-{number}")
        finally:
            self._queue.shut_down()
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

    async def _work(self) -> None:
        while (key := await self._queue.get()) is not None:
            try:
                await self._attend(key)
            finally:
                self._queue.done(key)

    async def _attend(self, key: ObjectKey) -> None:
        """Look at one key, unless the caches lag behind its last writes; then it comes again."""
        if self._barrier.holds(key):
            self._waiting.add(key)
            return
        session = self._session()
        try:
            again = await self._look(key, session)
        except (LookAgain, Conflict) as stale:
            self._queue.add_rate_limited(key)
            self._log.debug("looking again", key=str(key), reason=str(stale))
        except KubeError as error:
            delay = self._queue.add_rate_limited(key)
            self._log.warning("reconcile failed", key=str(key), error=str(error), retry_in=delay)
        except Exception:  # noqa: BLE001 - loop edge: a fault in one key must not stop the others
            delay = self._queue.add_rate_limited(key)
            self._log.exception("reconcile broke", key=str(key), retry_in=delay)
        else:
            self._queue.forget(key)
            if again is not None:
                self._queue.add_after(key, again)
        finally:
            self._barrier.expect(key, session.writes)
