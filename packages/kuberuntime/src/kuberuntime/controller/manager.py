"""Runs the informers, controllers and other components of a process.

If a component fails, all components stop, because a restart is better than a partly working process. Controllers wait
for their informers, so the start order does not matter.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from kuberuntime.cache.informer import Informer


class Runnable(Protocol):
    """A component that runs until it is cancelled, for example an informer, a controller or a server."""

    async def run(self) -> None:
        """Run until cancelled."""


class Manager:
    """Runs `informers` and `runnables` until cancelled."""

    def __init__(self, *, informers: Sequence[Informer], runnables: Sequence[Runnable]) -> None:
        self._informers = informers
        self._runnables = runnables

    async def run(self) -> None:
        """Run all components until cancelled, or until a component fails."""
        async with asyncio.TaskGroup() as group:
            for runnable in (*self._informers, *self._runnables):
                group.create_task(runnable.run(), name=type(runnable).__name__)

    async def wait_synced(self) -> None:
        """Wait until the stores of all informers are filled."""
        for informer in self._informers:
            await informer.wait_synced()
