"""Parts of the cluster that are away for a time: the API server, its webhooks, and what a product adds to the cluster."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from localkube.faults.effects import Undo
from localkube.faults.fault import Fault, FaultError, FaultKind


class Part(Protocol):
    """Something that can be away."""

    async def leave(self) -> None:
        """Go away."""
        ...

    async def come_back(self) -> None:
        """Be there again; return once it is."""
        ...


class RemovablePart:
    """A context that is left and entered again whenever its part goes away and comes back."""

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self._enter = enter
        self._there = asyncio.Event()
        self._gone = asyncio.Event()
        self._is_wanted = asyncio.Event()
        self._is_unwanted = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the part there while the context is entered; it is entered once the part is there."""
        self._is_wanted.set()
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._live())
            await self._there.wait()
            try:
                yield
            finally:
                task.cancel()

    async def leave(self) -> None:
        """Leave the context."""
        self._is_wanted.clear()
        self._is_unwanted.set()
        await self._gone.wait()

    async def come_back(self) -> None:
        """Enter the context again."""
        self._is_unwanted.clear()
        self._is_wanted.set()
        await self._there.wait()

    async def _live(self) -> None:
        while True:
            await self._is_wanted.wait()
            async with self._enter():
                self._gone.clear()
                self._there.set()
                await self._is_unwanted.wait()
            self._there.clear()
            self._gone.set()


class Removing:
    """Takes parts away. One part can be away once at a time."""

    def __init__(self, parts: Mapping[FaultKind, Part]) -> None:
        self._parts = parts
        self._away: set[FaultKind] = set()

    async def begin(self, fault: Fault) -> Undo:
        """Take the part away."""
        kind = fault.kind
        part = self._parts.get(kind)
        if part is None:
            raise FaultError(f"{kind}: this cluster runs none")
        if kind in self._away:
            raise FaultError(f"{kind}: is away already")
        self._away.add(kind)

        async def undo() -> None:
            await part.come_back()
            self._away.discard(kind)

        await part.leave()
        return undo
