"""The series of repeated events that a recorder remembers.

In: series by key, as events are recorded. Out: the series that an event continues, if it is remembered. Most series are
of one event only; they wait six minutes for a repetition, so what they take is what a recorder takes.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from kuberuntime.plan import Event

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

SeriesKey: TypeAlias = bytes
"""A digest: the texts themselves would take most of the memory of a series."""


class Series(msgspec.Struct, gc=False):
    """One event object: its series, and whether it was sent to the server and created there.

    The `event` is kept only while it waits to be written: the next one of the series is the same. `stamp` is the end of
    the object's name. It is never part of a reference cycle, so the garbage collector does not track it.
    """

    key: SeriesKey
    event: Event | None
    stamp: int
    first: datetime
    last: datetime
    count: int = 1
    seen_at: float = 0.0
    sent: bool = False
    created: bool = False
    queued: bool = False


class SeriesMemory:
    """At most `most` series, each until `seconds` after its last event; the one not seen for longest comes first."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._series: dict[SeriesKey, Series] = {}

    def __len__(self) -> int:
        return len(self._series)

    def take(self, key: SeriesKey, at: float) -> Series | None:
        """Return the series that continues at this time, no longer remembered; forget those that ended."""
        while self._series and at - next(iter(self._series.values())).seen_at > self._seconds:
            del self._series[next(iter(self._series))]
        return self._series.pop(key, None)

    def put(self, series: Series) -> None:
        """Remember a series that was seen now; if there are too many, forget the first."""
        if len(self._series) >= self._most:
            del self._series[next(iter(self._series))]
        self._series[series.key] = series
