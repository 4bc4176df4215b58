"""Provides async context managers that remain open between tests. Each runs in a separate task."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class OpenContext(Generic[T]):
    """Enters and exits a context in the same task, for any caller."""

    def __init__(self, context: AbstractAsyncContextManager[T]) -> None:
        self._context = context
        self._entered: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._keep())

    @classmethod
    async def enter(cls, context: AbstractAsyncContextManager[T]) -> "OpenContext[T]":
        """Start to enter a context in the running loop."""
        return cls(context)

    async def value(self) -> T:
        """Return the value of the context."""
        waited: list[asyncio.Future[Any]] = [self._entered, self._task]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        self.check()
        return self._entered.result()

    def check(self) -> None:
        """Raise the exception that stopped the context, if there is one."""
        if self._task.done():
            self._task.result()
            raise RuntimeError(f"{self._context!r} has terminated")

    async def leave(self) -> None:
        """Exit the context gracefully."""
        self._leave.set()
        await self._task

    async def kill(self) -> None:
        """Cancel the code that runs in the context."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _keep(self) -> None:
        async with self._context as value:
            self._entered.set_result(value)
            await self._leave.wait()


@contextmanager
def kept(runner: asyncio.Runner, context: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Enter an async context, and exit it at the end. In between, the event loop also runs the tests."""
    opened = runner.run(OpenContext.enter(context))
    try:
        yield runner.run(opened.value())
    finally:
        runner.run(opened.leave())
