"""The clock seam: wall time and monotonic time as the event loop has them, so that a virtual loop moves both."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol


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
