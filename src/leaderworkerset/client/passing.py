"""Passes items from a task that produces them to an asynchronous iterator.

Tasks and time limits belong to the task that enters them, so following a cluster runs in a task of its own: a caller
may leave an iterator at any point.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from leaderworkerset.observation.podlogs import LogError

T = TypeVar("T")

MOST_LINES: Final = 100_000
"""The maximum lines that wait for a reader of followed logs; a slower reader gets an error, to limit memory."""


class Waiting(Generic[T]):
    """Items that wait for their reader; with `newest_only` a new item replaces the waiting one."""

    def __init__(self, *, newest_only: bool = False, most: int = MOST_LINES) -> None:
        self._items: deque[T] = deque(maxlen=1 if newest_only else None)
        self._newest_only = newest_only
        self._most = most
        self._changed = asyncio.Event()
        self._has_ended = False

    def put(self, item: T) -> None:
        """Add an item."""
        if not self._newest_only and len(self._items) >= self._most:
            raise LogError(f"{self._most} lines wait to be read: read faster, or follow fewer ranks")
        self._items.append(item)
        self._changed.set()

    def end(self) -> None:
        """End the iteration after the waiting items."""
        self._has_ended = True
        self._changed.set()

    async def next(self) -> tuple[T] | None:
        """Return the next item, None at the end."""
        while not self._items:
            if self._has_ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        return (self._items.popleft(),)


async def passed(
    produce: Callable[[Callable[[T], None]], Coroutine[Any, Any, None]], *, newest_only: bool = False
) -> AsyncGenerator[T, None]:
    """Yield the items that `produce` passes to the given function, until it returns; raise its errors."""
    items = Waiting[T](newest_only=newest_only)
    task = asyncio.create_task(produce(items.put))
    task.add_done_callback(lambda _: items.end())
    try:
        while (item := await items.next()) is not None:
            yield item[0]
        await alone(task)
    finally:
        task.cancel()
        await asyncio.wait([task])


async def alone(work: Awaitable[T]) -> T:
    """Await, and raise the only error of a group of tasks instead of the group."""
    try:
        return await work
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from group
