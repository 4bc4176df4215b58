"""The parts of a process that serves kinds: each starts, becomes ready, drains, ends.

```
probes → metrics → webhooks → leading → …    started in this order, ended in the reverse order
```

The start of a part does not wait until it is ready: certificates may take minutes, and probes must answer before. When
asked to stop, all parts drain concurrently (they finish the work in progress and refuse nothing), and then end. An
error of one part stops all parts: a partly working process is worse than a restart.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ProcessPart(Protocol):
    """One part of a process."""

    @property
    def is_ready(self) -> bool:
        """Return whether the part works, as far as this process needs it."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Start the part, run it inside the context, and end it; errors of the part are raised there."""

    async def drain(self) -> None:
        """Finish the work in progress; called at most once, while the part runs."""


class AlwaysReady:
    """A part that nothing waits for, and that runs until it is stopped."""

    @property
    def is_ready(self) -> bool:
        """Return True."""
        return True

    async def drain(self) -> None:
        """Do nothing: continue until stopped."""


@asynccontextmanager
async def running(parts: Sequence[ProcessPart]) -> AsyncIterator[None]:
    """Run parts inside the context."""
    async with AsyncExitStack() as stack:
        for part in parts:
            await stack.enter_async_context(part.running())
        yield


async def run(parts: Sequence[ProcessPart], stopped: asyncio.Event) -> None:
    """Run parts until `stopped` is set and all are drained, or until one fails."""
    async with running(parts):
        await stopped.wait()
        log.info("stopping", logger="setup")
        async with asyncio.TaskGroup() as draining:
            for part in parts:
                draining.create_task(part.drain())


@asynccontextmanager
async def background(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run coroutines inside the context; a failed coroutine ends the context with its error."""
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(coroutine) for coroutine in work]
        yield
        for task in started:
            task.cancel()
