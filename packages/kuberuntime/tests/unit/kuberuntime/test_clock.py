"""Tests that changes of the wall clock are detected."""

from datetime import UTC, datetime, timedelta

from kuberuntime.clock import ClockJumps

START = datetime(2026, 1, 1, tzinfo=UTC)


class TwoClocks:
    """A wall clock and a monotonic clock that can diverge."""

    def __init__(self) -> None:
        self.wall, self.elapsed = START, 100.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.elapsed

    def move(self, seconds: float, *, jump: float = 0.0) -> None:
        self.elapsed += seconds
        self.wall += timedelta(seconds=seconds + jump)


def test_passing_time_is_not_a_jump() -> None:
    clock = TwoClocks()
    jumps = ClockJumps(clock)
    clock.move(86400)
    assert jumps.measure() == timedelta()


def test_jump_in_either_direction_is_returned_once() -> None:
    clock = TwoClocks()
    jumps = ClockJumps(clock)
    clock.move(5, jump=3600)
    assert (jumps.measure(), jumps.measure()) == (timedelta(hours=1), timedelta())
    clock.move(5, jump=-7200)
    assert (jumps.measure(), jumps.measure()) == (timedelta(hours=-2), timedelta())


def test_small_corrections_count_when_they_accumulate() -> None:
    clock = TwoClocks()
    jumps = ClockJumps(clock)
    found = []
    for _ in range(4):
        clock.move(60, jump=0.4)
        found.append(jumps.measure().total_seconds())
    assert found == [0, 0, 1.2, 0]
