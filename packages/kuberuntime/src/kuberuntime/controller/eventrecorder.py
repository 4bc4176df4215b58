"""Records events without blocking callers or raising errors (contract 8.3).

Input: `plan.Event`s, which are recorded without waiting. Output: events.k8s.io/v1 objects, which `run` writes one at
a time, serving namespaces in turn (`fairqueue.py`). If too many events are queued, the last event of the namespace
with the most events is dropped. Repetitions of an event about the same object are combined in one object with a
`series`, which is patched at most every `FOLD` seconds. Simultaneous events about many numbered objects
(`Event.of_many`) are also combined. Unlike upstream, events with different notes are separate events, so that no note
is lost. The resourceVersion of the regarding object can differ, so that a status write does not split a series. Names
contain the time, as upstream. If a different recorder has used a name, the next name is tried. Events that cannot be
written are logged and dropped. Memory is limited.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final, TypeAlias

import msgspec
import structlog
from msgspec.structs import replace

from kuberuntime.backoff import Backoff
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.errors import (
    AlreadyExistsError,
    ConnectionFailedError,
    InternalError,
    KubeError,
    NotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from kuberuntime.fairqueue import FairQueue
from kuberuntime.objects import meta, ordinals
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import EVENTS
from kuberuntime.plan import Event

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)

SeriesKey: TypeAlias = bytes
"""The digest of an event series, which requires less memory than the complete event."""


class Series(msgspec.Struct, gc=False):
    """The event series of one object, and whether the object was sent and created.

    The `event` is kept only until it is written, because the next event of the series is the same. `stamp` is the
    suffix of the object's name. A series is never part of a reference cycle, so the garbage collector does not track
    it.
    """

    key: SeriesKey
    event: Event | None
    stamp: int
    first: datetime
    last: datetime
    count: int = 1
    observed_at: float = 0.0
    is_sent: bool = False
    is_created: bool = False
    is_queued: bool = False


class SeriesMemory:
    """Stores up to `most` series, each until `seconds` after its last event. The least recent series is first."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._series: dict[SeriesKey, Series] = {}

    def __len__(self) -> int:
        return len(self._series)

    def pop(self, key: SeriesKey, at: float) -> Series | None:
        """Remove and return the series that continues at this time. Remove expired series."""
        while self._series and at - next(iter(self._series.values())).observed_at > self._seconds:
            del self._series[next(iter(self._series))]
        return self._series.pop(key, None)

    def put(self, series: Series) -> None:
        """Add a series whose event was just recorded. Remove the first series if there are too many series."""
        if len(self._series) >= self._most:
            del self._series[next(iter(self._series))]
        self._series[series.key] = series


NOTE_BYTES: Final = 1024
"""The API server's size limit for a note in bytes."""

RANGES: Final = 50
"""The maximum number of ranges in a note, because the length of a note is limited."""

QUEUE: Final = 1000
"""The maximum number of queued events. Additional events are discarded, and their number is logged."""

SERIES: Final = 1024
"""The maximum number of recorded series. Each series requires about 0.3 KiB.

The least recent series is forgotten first.
"""

DIGEST: Final = 15
"""The size of a series key in bytes. The Python object requires 48 bytes. A longer key would require 64 bytes."""

SERIES_SECONDS: Final = 360.0
"""The seconds without a repetition after which the next occurrence is a new event, as in client-go."""

FOLD: Final = 5.0
"""The seconds during which repetitions are collected before the series is patched."""

NAMES: Final = 10
"""The maximum number of names for one event. Names collide only within the same microsecond."""

ATTEMPTS: Final = 6
RETRY: Final = Backoff(base=0.5, limit=10.0)
PASSING: Final = (
    ConnectionFailedError,
    InternalError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
"""The errors of a restarting or overloaded API server. A write is attempted up to `ATTEMPTS` times in 15.5 s."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class EventBatch(msgspec.Struct):
    """The first event of a batch, its time, and the numbers of all events in the batch."""

    event: Event
    since: datetime = EPOCH
    numbers: set[int] = msgspec.field(default_factory=set)

    def combine(self) -> Event:
        """Return one event for the whole batch, or the original event if the batch contains only one event."""
        event, of_many = self.event, self.event.of_many
        if of_many is None or len(self.numbers) == 1:
            return event
        numbers = ordinals.ranges(self.numbers, most=RANGES)
        return replace(event, note=of_many.note.replace("{numbers}", numbers), related=None)


class EventRecorder:
    """Writes the events of the process `instance`. The default reporting controller is `reporter`."""

    def __init__(self, client: Client, reporter: str, instance: str, clock: Clock) -> None:
        self._client = client
        self._reporter = reporter
        self._instance = instance
        self._clock = clock
        self._waiting = FairQueue[Series]()
        self._queue: asyncio.Queue[None] = asyncio.Queue(QUEUE)
        """The entries of queued events. An entry does not contain the series."""
        self._series = SeriesMemory(SERIES, SERIES_SECONDS)
        self._dropped = 0
        self._last_nanos = 0
        self._combined: dict[int, tuple[Series, Event]] = {}
        self._gathering: dict[SeriesKey, EventBatch] = {}

    def record(self, event: Event) -> None:
        """Queue an event without blocking.

        After the first event of many, equal events are recorded together `FOLD` seconds later.
        """
        now = self._clock.now()
        if event.of_many is None:
            self._record(event, now)
            return
        key = series_key(replace(event, note=event.of_many.note, related=None))
        gathered = self._gathering.get(key)
        if gathered is None:
            self._record(event, now)
            self._gather(key, event)
        else:
            if not gathered.numbers:
                gathered.event, gathered.since = event, now
            gathered.numbers.add(event.of_many.number)

    def _gather(self, key: SeriesKey, event: Event) -> None:
        """Start a batch of similar events, unless there are too many batches."""
        if len(self._gathering) < SERIES:
            self._gathering[key] = EventBatch(event)
            asyncio.get_running_loop().call_later(FOLD, self._record_batch, key)

    def _record_batch(self, key: SeriesKey) -> None:
        """Record the batch as one event, and start the next batch.

        After an empty batch, the next event is recorded immediately.
        """
        gathered = self._gathering.pop(key, None)
        if gathered is not None and gathered.numbers:
            self._record(gathered.combine(), gathered.since)
            self._gather(key, gathered.event)

    def _record(self, event: Event, moment: datetime) -> None:
        key, at = series_key(event), self._clock.monotonic()
        series = self._series.pop(key, at)
        if series is None:
            series = Series(key, event, self._unique_stamp(moment), first=moment, last=moment)
            self._enqueue(series, event)
        else:
            series.event = event
            series.count += 1
            series.last = moment
            if not series.is_queued:
                series.is_queued = True
                self._combined[series.stamp] = (series, event)
                asyncio.get_running_loop().call_later(FOLD, self._queue_repetitions, series.stamp)
        series.observed_at = at
        self._series.put(series)

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            await self._queue.get()
            series = self._waiting.pop()
            try:
                if series is not None and (event := self._unqueue(series)) is not None:
                    await self._write_or_drop(series, event)
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Wait until all recorded events are written or dropped. Collected repetitions are written immediately."""
        for key in list(self._gathering):
            self._record_batch(key)
        for stamp in list(self._combined):
            self._queue_repetitions(stamp)
        await self._queue.join()

    def _queue_repetitions(self, stamp: int) -> None:
        """Queue the repetitions of a series, unless `flush` has already queued them."""
        if (combined := self._combined.pop(stamp, None)) is not None:
            self._enqueue(*combined)

    def _enqueue(self, series: Series, event: Event) -> None:
        series.is_queued = True
        self._waiting.put(event.regarding.get("namespace", ""), series)
        try:
            self._queue.put_nowait(None)
        except asyncio.QueueFull:
            self._unqueue(self._waiting.drop_last())
            self._dropped += 1
            if self._dropped.bit_count() == 1:  # 1, 2, 4, 8, …: thousands of occurrences cause only a few log lines
                log.warning("events dropped because the queue is full", dropped=self._dropped, limit=QUEUE)

    @staticmethod
    def _unqueue(series: Series) -> Event | None:
        """Remove and return the event of a series that is no longer queued."""
        event, series.event, series.is_queued = series.event, None, False
        return event

    async def _write_or_drop(self, series: Series, event: Event) -> None:
        try:
            await self._write_with_retries(series, event)
        except KubeError as error:
            log.warning("failed to write an event", name=_name(event, series), reason=event.reason, error=str(error))

    async def _write_with_retries(self, series: Series, event: Event) -> None:
        """Write one event. Retry while the API server restarts or is overloaded."""
        for failures in range(1, ATTEMPTS):
            try:
                await self._write(series, event)
            except PASSING as error:
                log.debug("failed to write an event, retrying", name=_name(event, series), error=str(error))
                await asyncio.sleep(RETRY.delay(failures))
            else:
                return
        await self._write(series, event)

    async def _write(self, series: Series, event: Event) -> None:
        obj = build_event(event, series, self._reporter, self._instance)
        if series.is_created:
            try:
                await self._client.patch(EVENTS, meta.key(obj), {"series": obj["series"]}, kind="merge")
            except NotFoundError:  # events expire
                series.is_sent = series.is_created = False
        if not series.is_created:
            await self._create(series, event)
            series.is_created = True

    async def _create(self, series: Series, event: Event) -> None:
        """Create the object. Use a new name if a different recorder created an event in the same microsecond.

        If a retry finds an object with this name, this recorder created it, and only the response was lost.
        """
        for attempts_left in reversed(range(NAMES)):
            is_first, series.is_sent = not series.is_sent, True
            try:
                await self._client.create(EVENTS, build_event(event, series, self._reporter, self._instance))
            except AlreadyExistsError:
                if not is_first:
                    return
                if not attempts_left:
                    raise
                series.stamp, series.is_sent = self._unique_stamp(series.first), False
            else:
                return

    def _unique_stamp(self, now: datetime) -> int:
        nanos = (now - EPOCH) // MICROSECOND * 1000
        self._last_nanos = max(nanos, self._last_nanos + 1)
        return self._last_nanos


def series_key(event: Event) -> SeriesKey:
    """Return a key that is identical for all events of a series."""
    parts = (
        event.type,
        event.reason,
        event.action,
        event.note,
        _without_version(event.regarding),
        _without_version(event.related or {}),
    )
    return blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=DIGEST).digest()


def build_event(event: Event, series: Series, reporter: str, instance: str) -> JSONObject:
    """Build the events.k8s.io/v1 object of a series. The namespace of cluster-scoped objects is `default`."""
    obj: JSONObject = {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": _name(event, series), "namespace": event.regarding.get("namespace") or "default"},
        "eventTime": microtime(series.first),
        "type": event.type,
        "reason": event.reason,
        "action": event.action,
        "note": event.note.encode()[:NOTE_BYTES].decode(errors="ignore"),
        "regarding": event.regarding,
        "reportingController": event.reporter or reporter,
        "reportingInstance": instance,
    }
    if event.related is not None:
        obj["related"] = event.related
    if series.count > 1:
        obj["series"] = {"count": series.count, "lastObservedTime": microtime(series.last)}
    return obj


def microtime(moment: datetime) -> str:
    """Format a time as a Kubernetes MicroTime.

    >>> microtime(datetime(2026, 1, 2, 3, 4, 5, 6, UTC))
    '2026-01-02T03:04:05.000006Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _name(event: Event, series: Series) -> str:
    return f"{event.regarding.get('name', '')}.{series.stamp:x}"


def _without_version(reference: JSONObject) -> JSONObject:
    """Return an object reference without its resourceVersion."""
    return {name: value for name, value in reference.items() if name != "resourceVersion"}
