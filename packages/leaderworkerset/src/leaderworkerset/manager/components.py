"""Defines the components of a process, each of which starts, becomes ready, drains, and stops.

```
probes → metrics → webhooks → leading → …    started in this order, ended in the reverse order
```

The start of a component does not wait until it is ready, because certificates may take minutes, and probes must respond
before that. When the process is stopped, all components drain concurrently (they finish the work in progress, and still
accept requests), and then stop. An error in one component stops all of them, because a partly working process is worse
than a restart.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

import structlog

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ProcessPart(Protocol):
    """A component of a process."""

    @property
    def is_ready(self) -> bool:
        """Return whether the component is ready, as far as this process requires it."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run the component while the context is active. The context raises the errors of the component."""

    async def drain(self) -> None:
        """Finish the work in progress. This is called at most once, while the component is running."""


class AlwaysReady:
    """A component that no other component waits for, and that runs until it is stopped."""

    @property
    def is_ready(self) -> bool:
        """Return True."""
        return True

    async def drain(self) -> None:
        """Do nothing, because the component continues until it is stopped."""


@asynccontextmanager
async def running(parts: Sequence[ProcessPart]) -> AsyncIterator[None]:
    """Run components while the context is active."""
    async with AsyncExitStack() as stack:
        for part in parts:
            await stack.enter_async_context(part.running())
        yield


async def run(parts: Sequence[ProcessPart], stopped: asyncio.Event) -> None:
    """Run components until `stopped` is set and all are drained, or until a component fails."""
    async with running(parts):
        await stopped.wait()
        log.info("stopping", logger="setup")
        async with asyncio.TaskGroup() as draining:
            for part in parts:
                draining.create_task(part.drain())


@asynccontextmanager
async def run_in_background(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run coroutines while the context is active. If a coroutine fails, the context exits with its error."""
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(coroutine) for coroutine in work]
        yield
        for task in started:
            task.cancel()
