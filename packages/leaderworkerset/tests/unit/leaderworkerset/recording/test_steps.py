"""Tests the newest step and the rate from a container's output, and limits for endless lines."""

from datetime import UTC, datetime, timedelta

from leaderworkerset.api.progressannotations import MARK, Progress
from leaderworkerset.recording.progressfollower import LONGEST_LINE, LogLines, Steps

AT = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def test_other_lines_are_ignored() -> None:
    steps = Steps()
    steps.add("loading", AT)
    assert steps.newest is None


def test_rate_is_that_of_the_last_steps() -> None:
    steps = Steps()
    for number in range(100):
        steps.add(f"{MARK}step={number} total=1000", after(number if number < 50 else 50 + (number - 50) / 4))
    assert steps.newest is not None
    assert (steps.newest.step, steps.newest.at, steps.newest.rate) == (99, after(62.25), 4.0)


def test_repeated_step_updates_only_its_metrics() -> None:
    steps = Steps()
    steps.add(f"{MARK}step=7 loss=2", AT)
    steps.add(f"{MARK}step=7 loss=1", after(60))
    assert steps.newest == Progress(step=7, metrics=(("loss", "1"),), at=AT)


def test_repeated_log_changes_nothing_and_a_restart_resets() -> None:
    steps = Steps()
    steps.add(f"{MARK}step=7", after(10))
    steps.add(f"{MARK}step=6", after(9))
    assert steps.newest == Progress(step=7, at=after(10))
    steps.add(f"{MARK}step=1", after(20))
    assert steps.newest == Progress(step=1, at=after(20))
    steps.add(f"{MARK}step=3", after(21))
    assert steps.newest == Progress(step=3, at=after(21), rate=2.0)


def test_two_steps_at_one_moment_have_no_rate() -> None:
    steps = Steps()
    steps.add(f"{MARK}step=1", AT)
    steps.add(f"{MARK}step=2", AT)
    assert steps.newest == Progress(step=2, at=AT)


def test_endless_line_takes_no_memory() -> None:
    lines = LogLines()
    for _ in range(100):
        assert lines.feed(b"x" * 10_000) == []
    (long, short) = lines.feed(b"\nshort\nrest")
    assert len(long) <= LONGEST_LINE + 10
    assert short == b"short"
    assert lines.feed(b"ed\n") == [b"rested"]
