"""Provides a clock that tests set."""

from datetime import UTC, datetime


class FakeClock:
    """Returns `time` until a test changes it."""

    def __init__(self, time: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.time = time

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()
