"""The clock interface. A virtual event loop can control both wall time and monotonic time."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

SMALLEST_JUMP: Final = timedelta(seconds=1)
"""The minimum jump. Smaller differences are normal clock corrections, which do not affect deadlines."""


class Clock(Protocol):
    """A source of wall time and monotonic time."""

    def now(self) -> datetime:
        """Return wall time, UTC, with microseconds."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start, which never decrease."""
        ...


class SystemClock:
    """The wall time of the machine, and the monotonic time of the running event loop."""

    def now(self) -> datetime:
        """Return wall time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the running loop's time in seconds."""
        return asyncio.get_running_loop().time()


class ClockJumps:
    """Detects that the wall clock was set, by comparing it with the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._read()

    def take(self) -> timedelta:
        """Return by how much the clock was set since the last jump. The value is negative if it was set back."""
        jump = self._read() - self._began
        if abs(jump) < SMALLEST_JUMP:
            return timedelta()
        self._began += jump
        return jump

    def _read(self) -> datetime:
        """Return the wall time at which the monotonic clock was 0."""
        return self._clock.now() - timedelta(seconds=self._clock.monotonic())
