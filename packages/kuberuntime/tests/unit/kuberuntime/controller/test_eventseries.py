"""Tests the event series in the memory of a recorder."""

from datetime import UTC, datetime

from kuberuntime.controller.eventrecorder import Series, SeriesMemory

FIRST = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


def series(key: bytes, seen_at: float = 0.0) -> Series:
    return Series(key, None, 2**60 + 1, FIRST, FIRST, observed_at=seen_at)


def test_completed_series_are_removed_from_memory() -> None:
    memory = SeriesMemory(10, 360.0)
    for one in (series(b"a"), series(b"b"), series(b"c", 1.0)):
        memory.put(one)
    assert memory.pop(b"a", 360.5) is None
    assert len(memory) == 1
