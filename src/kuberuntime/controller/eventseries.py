"""The series of repeated events that a recorder remembers: a few bytes each while nothing of them waits to be written.

In: series by key, as events are recorded. Out: the series that an event continues, if it is remembered. Most series are
of one event only; they wait six minutes for a repetition, so what they take is what a recorder takes.
"""

from datetime import UTC, datetime, timedelta
from struct import Struct
from typing import Final, TypeAlias

import msgspec

from kuberuntime.plan import Event

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

SeriesKey: TypeAlias = bytes
"""A digest: the texts themselves would take most of the memory of a series."""

_RESTING: Final = Struct("<dqqI??")
"""`seen_at`, `stamp`, `first` in microseconds, `count`, `sent`, `created`; the next event sets `last`."""

_SEEN_AT: Final = Struct("<d")
_MOST_COUNTED: Final = 2**32 - 1


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
        self._series: dict[SeriesKey, Series | bytes] = {}

    def __len__(self) -> int:
        return len(self._series)

    def take(self, key: SeriesKey, at: float) -> Series | None:
        """Return the series that continues at this time, no longer remembered; forget those that ended."""
        while self._series and at - _seen_at(next(iter(self._series.values()))) > self._seconds:
            del self._series[next(iter(self._series))]
        found = self._series.pop(key, None)
        return _woken(key, found) if isinstance(found, bytes) else found

    def put(self, series: Series) -> None:
        """Remember a series that was seen now; if there are too many, forget the first."""
        if len(self._series) >= self._most:
            del self._series[next(iter(self._series))]
        self._series[series.key] = series

    def rest(self, series: Series) -> None:
        """Keep a series in a few bytes, if it is still remembered and nothing of it waits to be written."""
        if series.event is None and not series.queued and self._series.get(series.key) is series:
            self._series[series.key] = _RESTING.pack(
                series.seen_at,
                series.stamp,
                (series.first - EPOCH) // MICROSECOND,
                min(series.count, _MOST_COUNTED),
                series.sent,
                series.created,
            )


def _seen_at(series: Series | bytes) -> float:
    if isinstance(series, bytes):
        seen_at: float = _SEEN_AT.unpack_from(series)[0]
        return seen_at
    return series.seen_at


def _woken(key: SeriesKey, resting: bytes) -> Series:
    seen_at, stamp, micros, count, sent, created = _RESTING.unpack(resting)
    first = EPOCH + micros * MICROSECOND
    return Series(key, None, stamp, first, first, count, seen_at, sent, created)
