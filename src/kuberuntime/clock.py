"""The clock seam: wall time and monotonic time as the event loop has them, so that a virtual loop moves both."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

SMALLEST_JUMP: Final = timedelta(seconds=1)
"""Less is how clocks are kept right: no deadline depends on it."""


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Return wall time, UTC, with microseconds."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start that never run backwards."""
        ...


class SystemClock:
    """Wall time of the machine, monotonic time of the running event loop."""

    def now(self) -> datetime:
        """Return wall time, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the running loop's time in seconds."""
        return asyncio.get_running_loop().time()


class ClockJumps:
    """By how much the wall clock was set: how far it and the monotonic clock moved apart."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = self._read()

    def take(self) -> timedelta:
        """Return the jump since the last one that was returned, negative where the clock was set back."""
        jump = self._read() - self._began
        if abs(jump) < SMALLEST_JUMP:
            return timedelta()
        self._began += jump
        return jump

    def _read(self) -> datetime:
        """Return when the monotonic clock was 0 by the wall clock."""
        return self._clock.now() - timedelta(seconds=self._clock.monotonic())
