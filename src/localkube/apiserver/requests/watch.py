"""The watch hub: from committed changes to the lines that watchers read.

```
store ──changes of a commit──► hub ──► feed (one per resource, selection and representation) ──► watchers
```

Watchers that would see the same lines share a feed: a change is matched and encoded once per feed. What a feed has
collected is joined once and handed to all its watchers, at once when the hub was idle and otherwise at most every
`PACE` seconds and a little per watcher, so that a storm of writes costs each watcher one wake-up per interval.

An object that enters the selection is ADDED, one that leaves it is DELETED (with its last matching state). A watcher
that does not keep up is ended with 410 Expired; its client lists anew.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import refusal
from localkube.apiserver.model.catalog import Served
from localkube.apiserver.requests.filters import Selection
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.storage.store import Change, ChangeType

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

PACE: Final = 0.005
"""Seconds between two deliveries under load."""

PACE_PER_WATCHER: Final = 0.00005
"""Seconds added for every watcher of the last delivery: about what it takes to hand lines to one."""

BUFFER: Final = 64 * 2**20
"""Bytes a watcher may lag behind. The bytes of one feed are shared by its watchers."""

TOGETHER: Final = 128 * 2**20
"""Bytes all watchers may lag behind together; what several of one feed have not taken counts once."""

PIECE: Final = 64 * 1024
"""Bytes handed out at once: what a connection whose client does not read keeps for itself."""

BOOKMARK_EVERY: Final = 60.0
"""Seconds between bookmarks, as kube-apiserver sends them."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes the objects of watch events in one representation. Watchers share lines if it has the same `name`.

    `identity` is the kind and apiVersion of what it makes; `encode` takes an object as it is stored, and its encoding
    where that is at hand.
    """

    name: str
    identity: JSONObject
    encode: Callable[[JSONObject, bytes | None], bytes]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is watched. Watchers of equal subjects share their lines; `representation` names what `encode` makes."""

    served: Served
    selection: Selection
    representation: str

    @property
    def key(self) -> tuple[str, str, Selection, str]:
        """Return what makes two subjects equal."""
        return self.served.resource.api_version, self.served.resource.plural, self.selection, self.representation


def line(kind: str, encoded: bytes) -> bytes:
    """Build one line of a watch."""
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), encoded)


def transition(selection: Selection, change: Change) -> tuple[ChangeType, JSONObject, bytes | None] | None:
    """Return what a change is to the watches of a selection: the event, its object, and its encoding if stored so."""
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
    """One reader of a feed. Its first lines, what was there when it came, are its own; all others it shares."""

    def __init__(self) -> None:
        self._chunks: deque[bytes | memoryview] = deque()
        self._size = 0
        self._own = 0
        self._ended = False
        self._wake: asyncio.Future[None] | None = None

    def begin(self, chunk: bytes) -> None:
        """Hand over the first lines, which no other watcher has."""
        self._own = len(chunk)
        self.push(chunk)

    def push(self, chunk: bytes) -> None:
        """Hand over lines; end the watcher if it has not taken earlier ones."""
        if self._ended or not chunk:
            return
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > BUFFER:
            self.give_up()
        self.nudge()

    @property
    def lag(self) -> int:
        """Return how many bytes wait to be taken."""
        return self._size

    @property
    def own(self) -> int:
        """Return how many of these are kept for nobody else."""
        return self._own

    def give_up(self) -> None:
        """Forget what was not taken, and end the stream with the advice to list again."""
        slow = refusal.expired("the watch was too slow to keep up with the changes: list again")
        self._chunks, self._size, self._own = deque(), 0, 0
        self.end(line("ERROR", encode(slow.status())))

    def end(self, last: bytes = b"") -> None:
        """End the stream behind what was pushed and `last`."""
        if not self._ended:
            self._chunks.append(last)
            self._ended = True
            self.nudge()

    async def take(self) -> bytes | None:
        """Return the next of what was pushed, waiting for it or for a nudge; None at the end of the stream."""
        if not self._chunks and not self._ended:
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
            self._wake = None
        if not self._chunks:
            return None if self._ended else b""
        taken = self._take_piece()
        self._size = max(self._size - len(taken), 0)  # the last line of a stream was not counted
        self._own = max(self._own - len(taken), 0)
        return taken

    def _take_piece(self) -> bytes:
        """Take whole chunks as long as they fit in a piece, or a part of one that does not."""
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
        """Let `take` return, with nothing if need be."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Feed:
    """The lines of one subject, for all its watches."""

    def __init__(self, subject: Subject, encoder: Encoder) -> None:
        self.subject = subject
        self.watchers: dict[Watcher, None] = {}  # a set that keeps its order
        self._encoder = encoder
        self._lines: list[bytes] = []

    def take_in(self, change: Change) -> None:
        """Add the line of a change, if it concerns these watches."""
        event = transition(self.subject.selection, change)
        if event is not None:
            kind, obj, value = event
            self._lines.append(line(kind, self._encoder.encode(obj, value)))

    def lines_of(self, changes: Iterable[Change]) -> bytes:
        """Return the lines of earlier changes."""
        events = (transition(self.subject.selection, change) for change in changes)
        return b"".join(line(kind, self._encoder.encode(obj, value)) for kind, obj, value in filter(None, events))

    def added(self, objects: Iterable[tuple[JSONObject, bytes]]) -> bytes:
        """Return the lines that make objects known."""
        return b"".join(line("ADDED", self._encoder.encode(obj, value)) for obj, value in objects)

    def bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        """Return the bookmark: the line that says how far the watch has come."""
        metadata: JSONObject = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        return line("BOOKMARK", encode(self._encoder.identity | {"metadata": metadata}))

    def deliver(self) -> int:
        """Hand the collected lines to all watchers; return how many that were."""
        if not self._lines:
            return 0
        chunk = b"".join(self._lines)
        self._lines = []
        for watcher in self.watchers:
            watcher.push(chunk)
        return len(self.watchers)

    @property
    def lag(self) -> int:
        """Return how many bytes are kept: each watcher's own, and for the slowest what all others wait for a part of."""
        shared = max((watcher.lag - watcher.own for watcher in self.watchers), default=0)
        return shared + sum(watcher.own for watcher in self.watchers)

    def shed(self) -> None:
        """End the slower half of those that lag behind."""
        most = max((watcher.lag for watcher in self.watchers), default=0)
        for watcher in self.watchers:
            if watcher.lag * 2 > most:
                watcher.give_up()


class WatchHub:
    """Owns the feeds."""

    def __init__(self) -> None:
        self._feeds: dict[tuple[str, str, Selection, str], Feed] = {}
        self._by_resource: dict[str, list[Feed]] = {}
        self._served = 0
        self._delivered = 0.0
        self._timer: asyncio.Handle | None = None
        self._closed = False

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """Return what is watched."""
        return tuple(self._feeds.values())

    @property
    def watching(self) -> int:
        """Return how many watchers there are."""
        return sum(len(feed.watchers) for feed in self._feeds.values())

    def publish(self, changes: Sequence[Change]) -> None:
        """Take in the changes of a commit."""
        for change in changes:
            for feed in tuple(self._by_resource.get(change.key.resource, ())):
                self._take_in(feed, change)
        if changes and self._timer is None and self._feeds and not self._closed:
            loop = asyncio.get_running_loop()
            pace = PACE + PACE_PER_WATCHER * self._served
            self._timer = loop.call_at(max(self._delivered + pace, loop.time()), self._deliver)

    def _take_in(self, feed: Feed, change: Change) -> None:
        """Add a change to a feed; end the watches of one that cannot show it, so that their clients list anew."""
        try:
            feed.take_in(change)
        except Exception:
            log.exception("a change cannot be shown to those who watch", key=change.key, revision=change.revision)
            failed = refusal.internal_error(f"the change {change.revision} cannot be shown: list again")
            feed.deliver()
            for watcher in tuple(feed.watchers):
                watcher.end(line("ERROR", encode(failed.status())))

    def attach(self, subject: Subject, encoder: Encoder) -> tuple[Feed, Watcher]:
        """Make a watcher of everything committed from now on. The caller detaches it."""
        feed = self._feeds.get(subject.key)
        if feed is None:
            feed = self._feeds[subject.key] = Feed(subject, encoder)
            self._by_resource.setdefault(subject.served.stored_as, []).append(feed)
        feed.deliver()
        self._shed()
        watcher = Watcher()
        feed.watchers[watcher] = None
        if self._closed:
            watcher.end()
        return feed, watcher

    def detach(self, feed: Feed, watcher: Watcher) -> None:
        """Forget a watcher."""
        feed.watchers.pop(watcher, None)
        if not feed.watchers and self._feeds.get(feed.subject.key) is feed:
            del self._feeds[feed.subject.key]
            self._by_resource[feed.subject.served.stored_as].remove(feed)

    def end(self, stored_as: str) -> None:
        """End all watches of a resource that is served differently now, or no longer."""
        for feed in tuple(self._by_resource.get(stored_as, ())):
            feed.deliver()
            for watcher in feed.watchers:
                watcher.end()

    def close(self) -> None:
        """End all watches, and those to come."""
        self._closed = True
        for stored_as in self._by_resource:
            self.end(stored_as)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _deliver(self) -> None:
        self._timer = None
        self._delivered = asyncio.get_running_loop().time()
        self._served = sum(feed.deliver() for feeds in self._by_resource.values() for feed in feeds)
        self._shed()

    def _shed(self) -> None:
        """End the slowest watchers where all together keep too much in memory: each could be fast, they are many."""
        while sum(feed.lag for feed in self.feeds) > TOGETHER:
            max(self.feeds, key=lambda feed: feed.lag).shed()


async def follow(
    watcher: Watcher, *, timeout: float, progress: Callable[[], None], every: float = BOOKMARK_EVERY
) -> AsyncIterator[bytes]:
    """Yield the lines of a watcher until `timeout` seconds passed; `progress` is called every so often to push more."""
    loop = asyncio.get_running_loop()
    end, due = loop.time() + timeout, loop.time() + every
    timer = loop.call_at(min(end, due), watcher.nudge)
    try:
        while loop.time() < end:
            chunk = await watcher.take()
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
