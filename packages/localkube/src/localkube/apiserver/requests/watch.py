"""Implements the watch broadcaster, which converts committed changes to lines for watchers.

```
store ──changes of a commit──► broadcaster ──► feed (one per resource, selection and representation) ──► watchers
```

Watchers of the same lines share a feed, so that a change is matched and encoded once per feed. A feed joins its
collected lines once and delivers them to all its watchers. If the broadcaster was idle, it delivers immediately. Otherwise it
delivers at most every `PACE` seconds (and a little more per watcher), so that many writes resume each watcher only once
per interval.

An object that starts to match the selection is ADDED, and an object that no longer matches is DELETED (with its last
matching state). A watch that lags too far behind is closed with 410 Expired, and its client lists again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import ServedKind
from localkube.apiserver.requests.filters import ObjectSelector
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.storage.store import Change, ChangeType

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

PACE: Final = 0.005
"""The minimum number of seconds between two deliveries under load."""

PACE_PER_WATCHER: Final = 0.00005
"""The additional delay in seconds for each watcher of the last delivery, which is about the time of one delivery."""

BUFFER: Final = 64 * 2**20
"""The maximum number of bytes by which a watcher can lag. The watchers of a feed share these bytes."""

PIECE: Final = 64 * 1024
"""The size of a write in bytes, and the maximum buffer of a connection whose client does not read."""

BOOKMARK_EVERY: Final = 60.0
"""The number of seconds between bookmarks, as in kube-apiserver."""


class Encoder(Struct, frozen=True):
    """Encodes the objects in watch events. Watchers whose encoders have the same `name` share lines.

    `identity` is the kind and apiVersion of the output. `encode` receives a stored object, and its stored encoding if
    that is known.
    """

    name: str
    identity: JSONObject
    encode: Callable[[JSONObject, bytes | None], bytes]


def event_line(kind: str, encoded: bytes) -> bytes:
    """Build one line of a watch."""
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), encoded)


def transition(selection: ObjectSelector, change: Change) -> tuple[ChangeType, JSONObject, bytes | None] | None:
    """Return the event type of a change for a selection, the object, and its stored encoding if it can be reused."""
    after = change.type != "DELETED" and selection.matches(change.object)
    before = change.previous is not None and selection.matches(change.previous)
    if after:
        return ("MODIFIED" if before else "ADDED"), change.object, change.value
    if not before or change.previous is None:
        return None
    if change.type == "DELETED":
        return "DELETED", change.object, change.value
    metadata = {**change.previous["metadata"], "resourceVersion": str(change.revision)}
    return "DELETED", {**change.previous, "metadata": metadata}, None


class Watcher:
    """One reader of a feed."""

    def __init__(self) -> None:
        self._chunks: deque[bytes | memoryview] = deque()
        self._size = 0
        self._ended = False
        self._wake: asyncio.Future[None] | None = None

    def push(self, chunk: bytes) -> None:
        """Add lines. Stop the watch if it lags too far."""
        if self._ended or not chunk:
            return
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > BUFFER:  # the client receives a 410 instead of the pending lines, and lists the objects
            slow = apierrors.expired(
                "the watch was too slow to receive all changes. List the objects, and start a new watch"
            )
            self._chunks, self._size = deque(), 0
            self.close(event_line("ERROR", encode(slow.status())))
        self.nudge()

    def close(self, last: bytes = b"") -> None:
        """Close the stream after the pending lines and `last`."""
        if not self._ended:
            self._chunks.append(last)
            self._ended = True
            self.nudge()

    async def next_lines(self) -> bytes | None:
        """Wait for lines or a `nudge`, and return the lines, or None if the stream is closed."""
        if not self._chunks and not self._ended:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
            self._wake = None
        if not self._chunks:
            return None if self._ended else b""
        piece = self._take_piece()
        self._size = max(self._size - len(piece), 0)  # the last line of a stream was not counted
        return piece

    def _take_piece(self) -> bytes:
        """Return as many complete chunks as fit into a block, or a part of a larger chunk."""
        parts = [self._chunks.popleft()]
        size = len(parts[0])
        if size > PIECE:
            rest = memoryview(parts[0])
            self._chunks.appendleft(rest[PIECE:])
            return bytes(rest[:PIECE])
        while self._chunks and size + len(self._chunks[0]) <= PIECE:
            parts.append(self._chunks.popleft())
            size += len(parts[-1])
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def nudge(self) -> None:
        """Return from `next_lines` even if there are no lines."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Feed:
    """The lines for all watchers of the same resource, selection and representation."""

    def __init__(self, served: ServedKind, selection: ObjectSelector, encoder: Encoder) -> None:
        self.served = served
        self.key = served.resource.api_version, served.resource.plural, selection, encoder.name
        self.watchers: dict[Watcher, None] = {}  # an ordered set
        self._selection = selection
        self._encoder = encoder
        self._lines: list[bytes] = []

    def add(self, change: Change) -> None:
        """Add the line for a change, if the selection matches."""
        event = transition(self._selection, change)
        if event is not None:
            kind, obj, value = event
            self._lines.append(event_line(kind, self._encoder.encode(obj, value)))

    def render_changes(self, changes: Iterable[Change]) -> bytes:
        """Return the lines for earlier changes."""
        events = (transition(self._selection, change) for change in changes)
        return b"".join(event_line(kind, self._encoder.encode(obj, value)) for kind, obj, value in filter(None, events))

    def added_lines(self, objects: Iterable[tuple[JSONObject, bytes]]) -> bytes:
        """Return the lines that report objects as ADDED."""
        return b"".join(event_line("ADDED", self._encoder.encode(obj, value)) for obj, value in objects)

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        """Return a bookmark line. The watch has reported all changes up to its revision."""
        metadata: JSONObject = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        return event_line("BOOKMARK", encode(self._encoder.identity | {"metadata": metadata}))

    def deliver(self) -> int:
        """Deliver the collected lines to all watchers. Return the number of watchers."""
        if not self._lines:
            return 0
        chunk = b"".join(self._lines)
        self._lines = []
        for watcher in self.watchers:
            watcher.push(chunk)
        return len(self.watchers)


class WatchBroadcaster:
    """Manages the feeds, and publishes committed changes to them."""

    def __init__(self) -> None:
        self._feeds: dict[tuple[str, str, ObjectSelector, str], Feed] = {}
        self._by_resource: dict[str, list[Feed]] = {}
        self._served = 0
        self._delivered = 0.0
        self._timer: asyncio.Handle | None = None
        self._closed = False

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """Return the feeds that have watchers."""
        return tuple(self._feeds.values())

    @property
    def watcher_count(self) -> int:
        """Return the number of watchers."""
        return sum(len(feed.watchers) for feed in self._feeds.values())

    def publish(self, changes: Sequence[Change]) -> None:
        """Add the changes of a commit to the feeds."""
        for change in changes:
            for feed in tuple(self._by_resource.get(change.key.resource, ())):
                self._add_to_feed(feed, change)
        if changes and self._timer is None and self._feeds and not self._closed:
            loop = asyncio.get_running_loop()
            pace = PACE + PACE_PER_WATCHER * self._served
            self._timer = loop.call_at(max(self._delivered + pace, loop.time()), self._deliver)

    def _add_to_feed(self, feed: Feed, change: Change) -> None:
        """Add a change to a feed. If the change cannot be encoded, close the watches of the feed."""
        try:
            feed.add(change)
        except Exception:
            log.exception("failed to send a change to watches", key=change.key, revision=change.revision)
            failed = apierrors.internal_error(
                f"change {change.revision} cannot be sent. List the objects, and start a new watch"
            )
            feed.deliver()
            for watcher in tuple(feed.watchers):
                watcher.close(event_line("ERROR", encode(failed.status())))

    def attach(self, served: ServedKind, selection: ObjectSelector, encoder: Encoder) -> tuple[Feed, Watcher]:
        """Return a watcher of all later changes. The caller must detach it."""
        candidate = Feed(served, selection, encoder)
        feed = self._feeds.setdefault(candidate.key, candidate)
        if feed is candidate:
            self._by_resource.setdefault(served.stored_as, []).append(feed)
        feed.deliver()
        watcher = Watcher()
        feed.watchers[watcher] = None
        if self._closed:
            watcher.close()
        return feed, watcher

    def detach(self, feed: Feed, watcher: Watcher) -> None:
        """Remove a watcher from its feed."""
        feed.watchers.pop(watcher, None)
        if not feed.watchers and self._feeds.get(feed.key) is feed:
            del self._feeds[feed.key]
            self._by_resource[feed.served.stored_as].remove(feed)

    def close_watches(self, stored_as: str) -> None:
        """Close all watches of a resource whose kind has changed or is no longer served."""
        for feed in tuple(self._by_resource.get(stored_as, ())):
            feed.deliver()
            for watcher in feed.watchers:
                watcher.close()

    def close_all_watches(self) -> None:
        """Close all watches. Clients can open new watches."""
        for stored_as in tuple(self._by_resource):
            self.close_watches(stored_as)

    def close(self) -> None:
        """Close all current and future watches."""
        self._closed = True
        self.close_all_watches()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _deliver(self) -> None:
        self._timer = None
        self._delivered = asyncio.get_running_loop().time()
        self._served = sum(feed.deliver() for feeds in self._by_resource.values() for feed in feeds)


async def follow(
    watcher: Watcher, *, timeout: float, progress: Callable[[], None], every: float = BOOKMARK_EVERY
) -> AsyncIterator[bytes]:
    """Yield the lines of a watcher until `timeout` seconds have passed. `progress` is called regularly."""
    loop = asyncio.get_running_loop()
    end, due = loop.time() + timeout, loop.time() + every
    timer = loop.call_at(min(end, due), watcher.nudge)
    try:
        while loop.time() < end:
            chunk = await watcher.next_lines()
            if chunk is None:
                return
            if chunk:
                yield chunk
            if loop.time() >= due:
                due = loop.time() + every
                timer = loop.call_at(min(end, due), watcher.nudge)
                progress()
    finally:
        timer.cancel()
