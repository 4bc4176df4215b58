"""An event loop whose clock jumps to the next timer, so that a test of hours takes milliseconds.

`run(scenario())` runs a coroutine on it. There must be no real I/O that takes time: while a socket or a thread is
waited for, timers would fire as if it took for ever. When nothing is left that could happen, the loop says so instead
of hanging.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

T = TypeVar("T")

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE: Final = 5.0
"""Real seconds to wait for a thread or a socket when no timer is set."""


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting, moves the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else PATIENCE)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: every task waits, and no timer is set")
            self.now += max(timeout, 0.0)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """The loop; `time()` starts at 0 and moves only when all tasks wait."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads without the time-out that Python 3.12 and later give: virtual time would jump it."""
        await super().shutdown_default_executor()


class VirtualClock:
    """The `Clock` that goes with the loop: wall time starts at `START`."""

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(scenario)
