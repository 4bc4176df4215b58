"""Runs workers that process the keys of a queue. Only one worker processes a key at a time.

A key that is added while it waits is queued once. A key that is added while it is processed is queued again afterwards.
The keys of one tenant are processed in the order of their arrival, and tenants take turns (`fairqueue.py`). Delays and the
exponential back-off of failing keys run on the event loop's clock. Mirrors client-go's `util/workqueue`.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable
from enum import StrEnum
from math import inf
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import structlog

from kuberuntime.backoff import Backoff
from kuberuntime.controller.executionerrors import RequeueError
from kuberuntime.errors import ConflictError, ConnectionFailedError, KubeError
from kuberuntime.fairqueue import FairQueue


class Result(StrEnum):
    """The result of processing a key. The names are the same as in controller-runtime."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"


class Observer(Protocol):
    """Observes the processing of queued keys. Methods must return immediately and must not fail."""

    def queued(self, key: Hashable) -> None:
        """Record that `key` was added to the queue."""

    def retried(self, key: Hashable) -> None:
        """Record that `key` is requeued after a failure."""

    def taken(self, key: Hashable) -> None:
        """Record that a worker has started to process `key`."""

    def finished(self, key: Hashable, result: Result) -> None:
        """Record the result of processing `key`."""


class NoObserver:
    """An observer that does nothing."""

    def queued(self, key: Hashable) -> None:
        """Do nothing."""

    def retried(self, key: Hashable) -> None:
        """Do nothing."""

    def taken(self, key: Hashable) -> None:
        """Do nothing."""

    def finished(self, key: Hashable, result: Result) -> None:
        """Do nothing."""


SILENCE: Final = NoObserver()


K = TypeVar("K", bound=Hashable)

Process: TypeAlias = Callable[[K], Awaitable[float | None]]
"""Processes a key. Returns the seconds until the key is requeued, or None if it is not requeued."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

BACKOFF: Final = Backoff(base=0.005, limit=1000.0)
"""The back-off of retries. It is the default of client-go for controllers."""

LASTING: Final = 1.0
"""The minimum back-off in seconds at which a conflict is logged, because retries did not resolve it."""


class WorkQueue(Generic[K]):
    """A work queue. `dirty` contains the keys to process. `processing` contains the keys in progress.

    `observer` is notified of every step, and by the workers of the results. `tenant` returns the tenant of a key. At
    most `share` keys of one tenant are processed at the same time.
    """

    def __init__(
        self,
        backoff: Backoff = BACKOFF,
        observer: Observer = SILENCE,
        *,
        tenant: Callable[[K], Hashable] = lambda _: "",
        share: float = inf,
    ) -> None:
        self._backoff = backoff
        self.observer = observer
        self._tenant = tenant
        self._share = share
        self._ready = FairQueue[K]()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._shares: Counter[Hashable] = Counter()
        """The number of keys in progress for each tenant."""
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._resting: dict[K, bool] = {}
        """The keys whose additions are delayed, and whether they were added."""
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._dirty)

    def add(self, key: K) -> None:
        """Enqueue `key` for the next free worker, or when its rest is over."""
        if key in self._resting:
            self._resting[key] = True
        else:
            self._add(key)

    def delay_additions(self, key: K, seconds: float) -> None:
        """Delay additions of `key` for some seconds, so that several changes cause one reconciliation."""
        if key not in self._resting and not self._closed:
            self._resting[key] = False
            asyncio.get_running_loop().call_later(seconds, self._end_delay, key)

    def _end_delay(self, key: K) -> None:
        if self._resting.pop(key):
            self._add(key)

    def _add(self, key: K) -> None:
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        self.observer.queued(key)
        if key not in self._processing:
            self._enqueue(key)

    def add_after(self, key: K, delay: float) -> None:
        """Enqueue `key` in `delay` seconds. If `key` has several delays, the shortest delay applies."""
        if delay <= 0:
            self._add(key)
            return
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if self._closed or (timer is not None and timer.when() <= loop.time() + delay):
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_later(delay, self._enqueue_due, key)

    def add_rate_limited(self, key: K) -> float:
        """Enqueue `key` after its back-off, which doubles each time until `forget` is called. Return the delay."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(self._failures[key])
        self.add_after(key, delay)
        self.observer.retried(key)
        return delay

    def forget(self, key: K) -> None:
        """Reset the back-off of `key`."""
        self._failures.pop(key, None)

    async def get(self) -> K | None:
        """Return the next key, or None if the queue is shut down and empty. The caller must call `done`."""
        while (key := self._ready.pop(self._exceeds_share)) is None:
            if self._closed and not self._ready:
                return None
            await self._wait()
        if self._closed and not self._ready:
            self._wake(len(self._waiters))
        self._dirty.discard(key)
        self._processing.add(key)
        self._shares[self._tenant(key)] += 1
        self._idle.clear()
        self.observer.taken(key)
        return key

    def done(self, key: K) -> None:
        """Mark `key` as done. Requeue it if it was added in the meantime."""
        self._processing.discard(key)
        tenant = self._tenant(key)
        self._shares[tenant] -= 1
        if not self._shares[tenant]:
            del self._shares[tenant]
        if key in self._dirty:
            self._enqueue(key)
        elif self._ready:
            self._wake()  # a different key of its tenant might be in progress
        if not self._processing:
            self._idle.set()

    def shut_down(self) -> None:
        """Stop accepting keys, and discard delayed keys. Workers receive the queued keys, and then None."""
        if self._closed:
            return
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._wake(len(self._waiters))

    def discard(self) -> None:
        """Stop accepting keys, and discard all queued keys. Workers stop after their current keys."""
        self._ready = FairQueue()
        self._dirty.clear()
        self.shut_down()
        self._wake(len(self._waiters))

    async def wait_idle(self) -> None:
        """Wait until no key is being processed."""
        await self._idle.wait()

    def _enqueue(self, key: K) -> None:
        self._ready.put(self._tenant(key), key)
        self._wake()

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self._wake()  # resume a different worker, which processes the key instead
            raise

    def _wake(self, count: int = 1) -> None:
        """Resume one idle worker for each new key."""
        while count and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():  # finished because its worker was cancelled
                waiter.set_result(None)
                count -= 1

    def _exceeds_share(self, tenant: Hashable) -> bool:
        return self._shares[tenant] >= self._share

    def _enqueue_due(self, key: K) -> None:
        del self._timers[key]
        self._add(key)


async def run_workers(
    queue: WorkQueue[K],
    process: Process[K],
    *,
    name: str,
    workers: int,
    is_held: Callable[[K], bool] = lambda _: False,
) -> None:
    """Process keys until cancelled, or until the queue is shut down and empty.

    Errors of a key are logged and never stop other keys. The key is retried after its back-off. A key that `is_held`
    is skipped, which counts neither as success nor as failure. It is enqueued again when it is released.
    """
    bound = log.bind(controller=name)

    async def serve() -> None:
        while (key := await queue.get()) is not None:
            try:
                result = Result.REQUEUE if is_held(key) else await _process(queue, process, key, bound)
                queue.observer.finished(key, result)
            finally:
                queue.done(key)

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(workers):
                group.create_task(serve(), name=f"{name}-{number}")
    finally:
        queue.shut_down()


def is_quiet(error: KubeError, delay: float) -> bool:
    """Return whether an error is not logged, because a retry resolves it or the outage has been logged."""
    causes = (error, error.__cause__)
    is_conflict = any(isinstance(cause, ConflictError) for cause in causes)
    return (is_conflict and delay < LASTING) or any(isinstance(cause, ConnectionFailedError) for cause in causes)


async def _process(queue: WorkQueue[K], process: Process[K], key: K, bound: structlog.stdlib.BoundLogger) -> Result:
    try:
        again = await process(key)
    except RequeueError as stale:
        delay = queue.add_rate_limited(key)
        bound.debug("requeued", key=str(key), reason=str(stale), retry_in=delay)
        return Result.REQUEUE
    except KubeError as error:
        delay = queue.add_rate_limited(key)
        report = bound.debug if is_quiet(error, delay) else bound.warning
        report("failed to reconcile", key=str(key), error=str(error), retry_in=delay)
    except Exception:  # noqa: BLE001 - loop edge: an error in one key must not stop the others
        delay = queue.add_rate_limited(key)
        bound.exception("unexpected error in a reconciliation", key=str(key), retry_in=delay)
    else:
        queue.forget(key)
        if again is None:
            return Result.SUCCESS
        queue.add_after(key, again)
        return Result.REQUEUE_AFTER
    return Result.ERROR
