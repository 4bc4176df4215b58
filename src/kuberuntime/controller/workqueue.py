"""The work queue: which key is to be worked on next, never by two workers at once.

A key that is added while it waits is there once; a key that is added while it is worked on comes again when that work
is done. Keys leave in the order they came, so none starves. Delays and the exponential back-off of failing keys run
on the event loop's clock. Mirrors client-go's `util/workqueue`.
"""

import asyncio
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from kuberuntime.backoff import Backoff
from kuberuntime.controller.observer import SILENCE, Observer

K = TypeVar("K", bound=Hashable)

BACKOFF: Final = Backoff(base=0.005, limit=1000.0)
"""client-go's default for controllers."""


class WorkQueue(Generic[K]):
    """Keys to work on. `dirty` ones want work; those in `processing` are being worked on.

    `observer` hears of every step; whoever does the work tells it how that ended.
    """

    def __init__(self, backoff: Backoff = BACKOFF, observer: Observer = SILENCE) -> None:
        self._backoff = backoff
        self.observer = observer
        self._ready: asyncio.Queue[K | None] = asyncio.Queue()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        """Return how many keys want work."""
        return len(self._dirty)

    def add(self, key: K) -> None:
        """Ask for work on `key` as soon as a worker is free."""
        if self._closed or key in self._dirty:
            return
        self._dirty.add(key)
        self.observer.queued(key)
        if key not in self._processing:
            self._ready.put_nowait(key)

    def add_after(self, key: K, delay: float) -> None:
        """Ask for work on `key` in `delay` seconds; of several times asked for, the earliest counts."""
        if delay <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if self._closed or (timer is not None and timer.when() <= loop.time() + delay):
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_later(delay, self._due, key)

    def add_rate_limited(self, key: K) -> float:
        """Ask for work on `key` after its back-off, which doubles each time until `forget`; return the delay."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(self._failures[key])
        self.add_after(key, delay)
        self.observer.retried(key)
        return delay

    def forget(self, key: K) -> None:
        """Begin the back-off of `key` anew."""
        self._failures.pop(key, None)

    async def get(self) -> K | None:
        """Return the next key, to be handed back by `done`; None once the queue is shut down and empty."""
        key = await self._ready.get()
        if key is None:
            self._ready.put_nowait(None)  # for the next worker
            return None
        self._dirty.discard(key)
        self._processing.add(key)
        self._idle.clear()
        self.observer.taken(key)
        return key

    def done(self, key: K) -> None:
        """End the work on `key`; it comes again if it was added meanwhile."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.put_nowait(key)
        if not self._processing:
            self._idle.set()

    def shut_down(self) -> None:
        """Take no more keys and drop delayed ones; workers get what is ready, then None."""
        if self._closed:
            return
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.put_nowait(None)

    def discard(self) -> None:
        """Take no more keys and drop all that wait: workers end once they have done what they are at."""
        while not self._ready.empty():
            self._ready.get_nowait()
        self._dirty.clear()
        self.shut_down()
        if self._ready.empty():
            self._ready.put_nowait(None)  # it was shut down before

    async def wait_idle(self) -> None:
        """Wait until no key is being worked on."""
        await self._idle.wait()

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)
