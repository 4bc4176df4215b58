"""Provides `asyncio.timeout` with the same behavior in Python 3.11 and all later versions.

Before 3.11.3, a timeout in the cleanup of a cancelled task raises CancelledError instead of TimeoutError. The rest of
the cleanup is then skipped, so that a lease would not be released, or processes would not be terminated.
"""

import asyncio
from types import TracebackType


class within:  # noqa: N801 - reads as a verb: `async with timeouts.within(3):`
    """Raise TimeoutError if the body runs longer than `seconds` (None for no limit). Yield the `asyncio.Timeout`."""

    __slots__ = ("_cancelled", "_scope", "_task")

    def __init__(self, seconds: float | None) -> None:
        self._scope = asyncio.timeout(seconds)  # noqa: TID251 - the one place
        self._task: asyncio.Task[object] | None = None
        self._cancelled = 0

    async def __aenter__(self) -> asyncio.Timeout:
        self._task = asyncio.current_task()
        self._cancelled = self._task.cancelling() if self._task is not None else 0
        return await self._scope.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._scope.__aexit__(kind, error, trace)
        if kind is asyncio.CancelledError and self._scope.expired() and self._is_cancelled_by_nobody_else():
            raise TimeoutError from error

    def _is_cancelled_by_nobody_else(self) -> bool:
        return self._task is not None and self._task.cancelling() <= self._cancelled
