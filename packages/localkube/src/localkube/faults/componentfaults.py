"""Implements faults of cluster components, such as the API server and its webhooks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from localkube.faults.effects import Undo
from localkube.faults.fault import Fault, FaultError, FaultKind


class Component(Protocol):
    """A cluster component that can be unavailable."""

    async def interrupt(self) -> None:
        """Make the component unavailable."""

    async def resume(self) -> None:
        """Start to restore the component."""


class RestartableComponent:
    """A component that is a context. It is exited when the component becomes unavailable, and reentered later.

    Entering may take as long as a different fault is active, so it runs in the background. A component that is not
    available yet can also be removed.
    """

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self._open = enter
        self._tasks = asyncio.TaskGroup()
        self._there = asyncio.Event()
        self._leaving = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._is_over = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Make the component available until the context exits. The context is entered when it is available."""
        async with self._tasks:
            await self.resume()
            await self._there.wait()
            try:
                yield
            finally:
                self._is_over = True
                await self.interrupt()

    async def interrupt(self) -> None:
        """Exit the context, or cancel a pending entry."""
        if self._life is not None:
            self._leaving.set()
            if not self._there.is_set():
                self._life.cancel()
            await asyncio.wait([self._life])

    async def resume(self) -> None:
        """Start to reenter the context, unless the cluster stops."""
        if not self._is_over:
            self._leaving.clear()
            self._life = self._tasks.create_task(self._run())

    async def _run(self) -> None:
        async with self._open():
            self._there.set()
            await self._leaving.wait()
        self._there.clear()


class ComponentFaults:
    """Makes components unavailable. A component can have only one such fault at a time."""

    def __init__(self, parts: Mapping[FaultKind, Component]) -> None:
        self._components = parts
        self._unavailable: set[FaultKind] = set()

    async def begin(self, fault: Fault) -> Undo:
        """Make the component unavailable."""
        kind = fault.kind
        part = self._components.get(kind)
        if part is None:
            raise FaultError(f"{kind}: not part of this cluster")
        if kind in self._unavailable:
            raise FaultError(f"{kind}: already unavailable")
        self._unavailable.add(kind)

        async def undo() -> None:
            await part.resume()
            self._unavailable.discard(kind)

        await part.interrupt()
        return undo
