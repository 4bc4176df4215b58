"""The loop: from changes to keys, from keys to looks, never from a cache that lags behind the last look's writes.

Changes of the watched informers become keys (`Watch.keys`); several workers take keys from one queue, never two of
them the same key (`workers.py`); a look does what is to be done for one key and notes what it wrote; the key is not
looked at again before the caches show that (`barrier.py`). What a look consists of is the caller's business: planning
and executing (`controller.py`), or anything else.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import structlog

from kuberuntime.backoff import Backoff
from kuberuntime.cache.informer import Change, Informer
from kuberuntime.controller.barrier import Barrier
from kuberuntime.controller.executor import Write
from kuberuntime.controller.observer import SILENCE, Observer
from kuberuntime.controller.workers import Workers
from kuberuntime.controller.workqueue import BACKOFF, WorkQueue
from kuberuntime.objects.meta import ObjectKey

Look: TypeAlias = Callable[[ObjectKey, list[Write]], Awaitable[float | None]]
"""Looks at one key, adds what it writes to the list (also before it fails), and returns when to look again."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Watch:
    """What to look at, and which keys a change of it concerns."""

    informer: Informer
    keys: Callable[[Change], Iterable[ObjectKey]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptions:
    """How many keys are looked at at the same time, how long one waits after a failure, and who hears of it."""

    workers: int = 4
    backoff: Backoff = BACKOFF
    observer: Observer = SILENCE


DEFAULTS: Final = LoopOptions()


class Loop:
    """Calls `look` for every key the watches name."""

    def __init__(self, name: str, *, watches: Sequence[Watch], look: Look, options: LoopOptions = DEFAULTS) -> None:
        self._watches = watches
        self._look = look
        self._log = log.bind(controller=name)
        self._queue = WorkQueue[ObjectKey](options.backoff, options.observer)
        self._workers = Workers(name, self._queue, self._attend, count=options.workers, is_held=self._is_held)
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
            await self._workers.run()
        finally:
            self._barrier.close()

    async def stop(self) -> None:
        """Begin with no more keys; return when those being looked at are done. `run` returns then, too."""
        self._queue.discard()
        await self._queue.wait_idle()

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

    def _is_held(self, key: ObjectKey) -> bool:
        """Return whether the caches lag behind the key's last writes; then it comes again when they do not."""
        if not self._barrier.holds(key):
            return False
        self._waiting.add(key)
        return True

    async def _attend(self, key: ObjectKey) -> float | None:
        writes: list[Write] = []
        try:
            return await self._look(key, writes)
        finally:
            self._barrier.expect(key, writes)
