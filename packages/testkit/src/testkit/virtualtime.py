"""Provides an event loop whose clock advances to the next timer, so that hours take milliseconds.

`run(scenario())` runs a coroutine on it. There must be no slow real I/O: while the loop waits for a socket or a thread,
timers would fire as if it took forever. If no event can happen any more, the loop raises an error instead of hanging.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final, TypeVar

T = TypeVar("T")

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE: Final = 5.0
"""The real time in seconds to wait for a thread or a socket when no timer is set."""


class _JumpingSelector(selectors.SelectSelector):
    """A selector that advances the clock instead of waiting."""

    def __init__(self, tick: float) -> None:
        super().__init__()
        self.now = 0.0
        self._tick = tick

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += self._tick
        ready = super().select(0 if timeout is not None else PATIENCE)
        if not ready:
            if timeout is None:
                raise RuntimeError("deadlock: all tasks are waiting, and no timer is set")
            self.now += max(timeout, 0.0)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time()` starts at 0 and advances only when all tasks wait."""

    tick = 0.0
    """The duration of one loop iteration in seconds."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector(self.tick)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads without the timeout of Python 3.12, which would expire in virtual time."""
        await super().shutdown_default_executor()


class _NumberedTask(asyncio.Task[T]):
    """A task whose hash is its number, so that sets of tasks have the same order in every process."""

    __slots__ = ("_number",)

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, T], **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class SingleThreadLoop(VirtualTimeLoop):
    """A virtual loop without threads. Work for a thread is run immediately, so every run has the same order.

    Its iterations take a little time, so that no timer waits forever for a time closer than the precision of floats.
    """

    tick = 1e-7

    def __init__(self) -> None:
        super().__init__()
        numbers = count()
        self.set_task_factory(lambda loop, work, **options: _NumberedTask(next(numbers), work, loop=loop, **options))

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Call the function, and return its result as a completed future."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the edge of what would be a thread
            future.set_exception(error)
        return future


class VirtualClock:
    """The `Clock` for the loop. Wall time starts at `START`, and is shifted by `jump` seconds."""

    def __init__(self) -> None:
        self.jump = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic() + self.jump)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class SkewedClock:
    """The clock of one machine. Its wall time is shifted by `skew` seconds."""

    def __init__(self, clock: VirtualClock) -> None:
        self.skew = 0.0
        self._clock = clock

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self.skew)

    def monotonic(self) -> float:
        return self._clock.monotonic()


def run(scenario: Coroutine[Any, Any, T], loop: type[VirtualTimeLoop] = VirtualTimeLoop) -> T:
    """Run a coroutine until it completes, in virtual time."""
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(scenario)
