"""The controller: from changes to keys, from keys to plans, from plans to writes.

Changes of the watched informers become keys (`Watch.keys`); several workers take keys from one queue, never two of
them the same key; `plan` reads the stores and returns a `Plan`; the executor performs it. What fails is logged and
tried again with back-off. The key is not planned again before the caches show what was written (`barrier.py`).

This is the loop edge: whatever goes wrong with one key ends here and never stops another.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import structlog

from leaderworkerset.api.meta import ObjectKey
from leaderworkerset.api.plan import Plan
from leaderworkerset.kube.backoff import Backoff
from leaderworkerset.kube.barrier import Barrier
from leaderworkerset.kube.clock import Clock
from leaderworkerset.kube.errors import KubeError
from leaderworkerset.kube.executor import ExecutionError, Executor, LookAgain
from leaderworkerset.kube.informer import Change, Informer
from leaderworkerset.kube.workqueue import BACKOFF, WorkQueue

Planner: TypeAlias = Callable[[ObjectKey], Awaitable[Plan]]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Watch:
    """What to look at, and which keys a change of it concerns."""

    informer: Informer
    keys: Callable[[Change], Iterable[ObjectKey]]


class Controller:
    """Keeps what `plan` wants true for every key the watches name."""

    def __init__(  # noqa: PLR0913 - the agreed wiring of a controller; all by name
        self,
        name: str,
        *,
        watches: Sequence[Watch],
        plan: Planner,
        executor: Executor,
        clock: Clock,
        workers: int = 4,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self.name = name
        self._watches = watches
        self._plan = plan
        self._executor = executor
        self._clock = clock
        self._workers = workers
        self._log = log.bind(controller=name)
        self._queue = WorkQueue[ObjectKey](backoff)
        self._waiting: set[ObjectKey] = set()
        self._barrier = Barrier({watch.informer for watch in watches}, self._released)

    def enqueue(self, key: ObjectKey, *, after: float = 0.0) -> None:
        """Ask for a look at `key`, for reasons no watch can see."""
        self._queue.add_after(key, after)

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
        try:
            await self._reconcile(key)
        except LookAgain as stale:
            self._barrier.expect(key, stale.writes)
            self._queue.add_rate_limited(key)
        except ExecutionError as failure:
            self._barrier.expect(key, failure.writes)
            self._retry(key, failure)
        except KubeError as error:
            self._retry(key, error)
        except Exception:  # noqa: BLE001 - loop edge: a fault in one key must not stop the others
            delay = self._queue.add_rate_limited(key)
            self._log.exception("reconcile broke", key=str(key), retry_in=delay)

    async def _reconcile(self, key: ObjectKey) -> None:
        started = self._clock.monotonic()
        plan = await self._plan(key)
        writes = await self._executor.execute(plan)
        self._barrier.expect(key, writes)
        self._queue.forget(key)
        if plan.requeue_after is not None:
            self._queue.add_after(key, plan.requeue_after)
        report = self._log.info if plan.actions else self._log.debug
        report("reconciled", key=str(key), actions=len(plan.actions), seconds=self._clock.monotonic() - started)

    def _retry(self, key: ObjectKey, error: KubeError) -> None:
        delay = self._queue.add_rate_limited(key)
        self._log.warning("reconcile failed", key=str(key), error=str(error), retry_in=delay)
