"""Streams events to a browser. One connection carries the page changes and log lines of all pages.

Browsers limit the number of connections to a server, so that separate connections for each page would block other
pages. A browser opens a stream, reads its number, and then adds and removes subscriptions to pages and logs. Each
event contains its subscription.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import structlog

from kuberuntime import randomness, timeouts
from lwsctl.dashboard.channel import PageChannel

MOST_STREAMS: Final = 48
"""The maximum number of open streams. Each browser has one stream."""

MOST_OF_USER: Final = 12
"""The maximum number of streams per user of a shared dashboard."""

MOST_TOPICS: Final = 40
"""The maximum number of pages and logs that the browsers of one user follow in total."""

PATIENCE: Final = 30.0
"""The timeout in seconds for a browser to read an event."""

BETWEEN_BEATS: Final = 5.0
"""The interval in seconds between heartbeats, which show that the server is running."""

BEAT: Final = b"event: beat\ndata: 1\n\n"
"""The heartbeat event. It is not a comment, so that pages receive the time of the last server response."""

KEY: Final = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?")
"""The keys of subscriptions. Browsers choose the keys."""

Write: TypeAlias = Callable[[bytes], Awaitable[None]]
Topic: TypeAlias = Callable[[Write], Awaitable[None]]
"""A subscription, which writes events until it is complete. The browser identifies it by a key."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class BrowserStream:
    """The open stream of one browser. Only the user of the browser can change it."""

    def __init__(self, user: str, write: Write, tasks: asyncio.TaskGroup) -> None:
        self.user = user
        self.id = randomness.uid()
        self.task = asyncio.current_task()
        self.topics: dict[str, asyncio.Task[None]] = {}
        self._plain, self._tasks = write, tasks
        self._write_lock = asyncio.Lock()
        self._is_broken = False

    async def write(self, data: bytes) -> None:
        """Write an event after all earlier events."""
        async with self._write_lock:
            try:
                async with timeouts.within(PATIENCE):
                    await self._plain(data)
            except BaseException:
                self._is_broken = True
                raise

    def add(self, key: str, topic: Topic) -> None:
        """Start a subscription, and replace the previous subscription with this key."""
        self.remove(key)
        task = self._tasks.create_task(self._follow(key, topic))
        self.topics[key] = task

    def remove(self, key: str) -> None:
        """Stop a subscription."""
        if (task := self.topics.pop(key, None)) is not None:
            task.cancel()

    async def _follow(self, key: str, topic: Topic) -> None:
        mark = b"data: %s\n" % key.encode()
        try:
            await topic(lambda event: self.write(mark + event))
        except Exception as error:  # subscriptions of other pages continue
            if self._is_broken:
                raise
            log.warning("a page subscription stopped", topic=key, error=repr(error), exc_info=error)
        await self.write(b"event: end\n%sdata: \n\n" % mark)


class BrowserStreams:
    """The open streams of a server."""

    def __init__(self) -> None:
        self._open: dict[str, BrowserStream] = {}

    def exceeded_limit(self, user: str, *, is_shared: bool) -> int:
        """Return the total or per-user limit that another stream would exceed, or 0 if there is none."""
        own = sum(stream.user == user for stream in self._open.values())
        if is_shared and own >= MOST_OF_USER:
            return MOST_OF_USER
        return MOST_STREAMS if len(self._open) >= MOST_STREAMS else 0

    def is_full(self, user: str) -> bool:
        """Return whether another subscription of a user would exceed the maximum."""
        return sum(len(stream.topics) for stream in self._open.values() if stream.user == user) >= MOST_TOPICS

    def find(self, ident: str, user: str) -> BrowserStream | None:
        """Return an open stream of this user."""
        stream = self._open.get(ident)
        return stream if stream is not None and stream.user == user else None

    async def serve(
        self, user: str, write: Write, first: tuple[str, Topic] | None, admits: Callable[[], Awaitable[bool]]
    ) -> None:
        """Serve a stream until its user loses access. Errors from `write` are raised in an exception group."""
        async with asyncio.TaskGroup() as tasks:
            stream = BrowserStream(user, write, tasks)
            self._open[stream.id] = stream
            try:
                await stream.write(b"event: opened\ndata: %s\n\n" % stream.id.encode())
                if first is not None:
                    stream.add(*first)
                while await admits():
                    await asyncio.sleep(BETWEEN_BEATS)
                    await stream.write(BEAT)
            finally:
                del self._open[stream.id]
                for key in list(stream.topics):
                    stream.remove(key)

    def close(self) -> None:
        """Cancel all streams, which would otherwise not complete."""
        for stream in self._open.values():
            if stream.task is not None:
                stream.task.cancel()


async def write_changes(channel: PageChannel, last: str, write: Write) -> None:
    """Write the changes to a page since a given state."""
    while True:
        newest = channel.ident
        for data in channel.events_after(last):
            await write(data)
        last = newest
        if channel.ident == last:  # otherwise, it changed while the browser was reading
            await channel.wait_for_change()


def line_writer(write: Write) -> Write:
    """Return a function that writes JSON lines as one event. Empty lines are omitted."""

    async def send(data: bytes) -> None:
        entries = data.splitlines()
        if any(entries):
            await write(b"event: lines\n%s\n" % b"".join(b"data: %s\n" % entry for entry in entries))

    return send
