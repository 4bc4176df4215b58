"""Defines the clock interface. A virtual event loop can replace wall time and monotonic time."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

SMALLEST_JUMP: Final = timedelta(seconds=1)
"""The minimum clock jump. Smaller differences are normal clock corrections, which do not affect deadlines."""


class Clock(Protocol):
    """A source of wall time and monotonic time."""

    def now(self) -> datetime:
        """Return the wall time in UTC with microseconds."""

    def monotonic(self) -> float:
        """Return monotonic seconds since an arbitrary start."""


class SystemClock:
    """The wall time of the machine, and the monotonic time of the current event loop."""

    def now(self) -> datetime:
        """Return the wall time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the time of the running event loop in seconds."""
        return asyncio.get_running_loop().time()


class ClockJumps:
    """Detects wall clock jumps by comparing the wall clock with the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._read()

    def measure(self) -> timedelta:
        """Return the size of the clock jump since the last call. It is negative if the clock was set back."""
        jump = self._read() - self._began
        if abs(jump) < SMALLEST_JUMP:
            return timedelta()
        self._began += jump
        return jump

    def _read(self) -> datetime:
        """Return the wall time at which the monotonic clock was 0."""
        return self._clock.now() - timedelta(seconds=self._clock.monotonic())
