"""The series that a recorder remembers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kuberuntime.controller.eventseries import Series, SeriesMemory
from kuberuntime.plan import Event

FIRST = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
EVENT = Event("Normal", "Reason", "Action", "note", {})


def series(key: bytes = b"key", event: Event | None = None, **fields: Any) -> Series:
    return Series(key, event, 2**60 + 1, FIRST, FIRST, **fields)


def rest(memory: SeriesMemory, one: Series) -> None:
    memory.put(one)
    memory.rest(one)


def test_a_series_that_rests_comes_back_as_it_was() -> None:
    memory = SeriesMemory(10, 360.0)
    rest(memory, series(count=7, seen_at=1.5, sent=True, created=True))
    assert [type(kept) for kept in memory._series.values()] == [bytes]
    assert memory.take(b"key", 2.0) == series(count=7, seen_at=1.5, sent=True, created=True)
    assert len(memory) == 0


def test_one_that_was_forgotten_does_not_replace_its_successor() -> None:
    memory, forgotten, successor = SeriesMemory(10, 360.0), series(), series()
    memory.put(successor)
    memory.rest(forgotten)
    assert memory.take(b"key", 0.0) is successor


@pytest.mark.parametrize("fields", [{"event": EVENT}, {"queued": True}], ids=["an event waits", "it is queued"])
def test_a_series_that_is_to_be_written_does_not_rest(fields: dict[str, Any]) -> None:
    memory, one = SeriesMemory(10, 360.0), series(**fields)
    rest(memory, one)
    assert memory.take(b"key", 0.0) is one


def test_a_count_beyond_four_bytes_stays_the_largest() -> None:
    memory = SeriesMemory(10, 360.0)
    rest(memory, series(count=2**40))
    found = memory.take(b"key", 0.0)
    assert found is not None
    assert found.count == 2**32 - 1


def test_series_that_ended_are_forgotten_whether_they_rest_or_not() -> None:
    memory = SeriesMemory(10, 360.0)
    rest(memory, series(b"a"))
    memory.put(series(b"b"))
    memory.put(series(b"c", seen_at=1.0))
    assert memory.take(b"a", 360.5) is None
    assert len(memory) == 1
