"""The manager: runs the informers, controllers and other parts of one process together.

If one of them fails, all stop: a half-working process is worse than a restart. Controllers wait for their informers by
themselves, so the order does not matter.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from kuberuntime.cache.informer import Informer


class Runnable(Protocol):
    """A part of a process that runs until it is cancelled: an informer, a controller, an event recorder, a server."""

    async def run(self) -> None:
        """Run until cancelled."""
        ...


class Manager:
    """Runs `informers` and `runnables` until cancelled."""

    def __init__(self, *, informers: Sequence[Informer], runnables: Sequence[Runnable]) -> None:
        self._informers = informers
        self._runnables = runnables

    async def run(self) -> None:
        """Run everything until cancelled, or until one part fails."""
        async with asyncio.TaskGroup() as group:
            for runnable in (*self._informers, *self._runnables):
                group.create_task(runnable.run(), name=type(runnable).__name__)

    async def wait_synced(self) -> None:
        """Wait until every informer has filled its store."""
        for informer in self._informers:
            await informer.wait_synced()
