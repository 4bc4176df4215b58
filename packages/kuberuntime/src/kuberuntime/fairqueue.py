"""Provides fair queues for tenants. A tenant with thousands of items delays other tenants by only one item.

The keys of a work queue wait in this way, by namespace (`controller/workqueue.py`), requests for the client's quota
(`client/ratelimit.py`), and events to be written (`controller/eventrecorder.py`).
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Queues items in FIFO order for each tenant, and serves tenants in round-robin order.

    >>> queue = FairQueue[str]()
    >>> for item in ("a1", "a2", "a3", "b1"):
    ...     queue.put(item[0], item)
    >>> [queue.pop() for _ in range(5)]
    ['a1', 'b1', 'a2', 'a3', None]
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Hashable, deque[T]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, tenant: Hashable, item: T) -> None:
        """Add an item."""
        self._waiting.setdefault(tenant, deque()).append(item)

    def pop(self, passed_over: Callable[[Hashable], bool] = lambda _: False) -> T | None:
        """Return the next item of the next tenant that is not skipped, or None if there is none."""
        tenant = next((candidate for candidate in self._waiting if not passed_over(candidate)), None)
        if tenant is None:
            return None
        items = self._waiting[tenant]
        item = items.popleft()
        self._waiting.move_to_end(tenant)
        if not items:
            del self._waiting[tenant]
        return item

    def drop_last(self) -> T:
        """Remove and return the last item of the tenant with the most items. The queue must not be empty."""
        tenant, items = max(self._waiting.items(), key=lambda entry: len(entry[1]))
        item = items.pop()
        if not items:
            del self._waiting[tenant]
        return item


class FairLock:
    """A fair lock. A waiting item is delayed by the current item, and by at most one item of each other tenant."""

    def __init__(self) -> None:
        self._waiting = FairQueue[asyncio.Future[None]]()
        self._holder: Hashable = None
        self._is_held = False

    @asynccontextmanager
    async def acquire(self, tenant: Hashable) -> AsyncIterator[None]:
        """Acquire the lock, and hold it during the context."""
        if self._is_held:
            granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.put(tenant, granted)
            try:
                await granted
            except asyncio.CancelledError:
                if granted.done() and not granted.cancelled():
                    self._release()
                raise
        self._is_held, self._holder = True, tenant
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        """Pass the lock to the next tenant. The last tenant is selected only if no other tenant is waiting."""
        while granted := self._waiting.pop(lambda tenant: tenant == self._holder) or self._waiting.pop():
            if not granted.done():  # a cancelled task no longer waits
                granted.set_result(None)
                return
        self._is_held = False
