"""Async context managers that stay entered between tests: each has a task of its own."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class OpenContext(Generic[T]):
    """Enters a context in one task and leaves it in the same task, for any caller."""

    def __init__(self, context: AbstractAsyncContextManager[T]) -> None:
        self._context = context
        self._entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._keep())

    @classmethod
    async def enter(cls, context: AbstractAsyncContextManager[T]) -> "OpenContext[T]":
        """Begin to enter a context, in the running loop."""
        return cls(context)

    async def value(self) -> T:
        """Return the value of the context."""
        waited: list[asyncio.Future[Any]] = [self._entered, self._task]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        self.check()
        return self._entered.result()

    def check(self) -> None:
        """Raise the exception that ended the context, if any."""
        if self._task.done():
            self._task.result()
            raise RuntimeError(f"{self._context!r} has ended")

    async def leave(self) -> None:
        """Leave the context in an orderly way."""
        self._leave.set()
        await self._task

    async def kill(self) -> None:
        """Cancel the running code inside."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _keep(self) -> None:
        async with self._context as value:
            self._entered.set_result(value)
            await self._leave.wait()
