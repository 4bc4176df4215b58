"""Ports of a pod over one tunnel, as kubectl forwards them: SPDY/3.1 inside a WebSocket, many connections in it.

In: what the client sends, and how to connect to a port of the pod. Out: what is to be sent to the client. Every
connection is a pair of streams (`pairing.py`) with a task of its own (`link.py`). Where the pod refuses one, the reason
goes to the error stream of that pair, and the others go on.

There is no flow control by stream. What a pod does not read waits in the inbox of its connection; once that is full the
client has to wait, and with it the other connections of its tunnel. If it is killed while it waits, that is noticed when
the pod reads on or ends.
"""

import asyncio
from collections.abc import AsyncIterable

from localkube.apiserver.front.portforward.link import Dial, PortLink
from localkube.apiserver.front.portforward.outlet import Outlet, Send
from localkube.apiserver.front.portforward.pairing import Pair, PairingError, Pairs, purpose
from localkube.apiserver.front.spdy.connection import BytesReceived, Connection, Dropped, Ended, Event, StreamOpened
from localkube.apiserver.front.spdy.errors import ProtocolError
from localkube.apiserver.front.spdy.frames import GoAwayStatus, ResetStatus


class Tunnel:
    """One client's tunnel to one pod; it lasts as long as `run`."""

    def __init__(self, dial: Dial, send: Send) -> None:
        self._dial = dial
        self._connection = Connection()
        self._outlet = Outlet(self._connection, send)
        self._pairs = Pairs()
        self._links: dict[int, PortLink] = {}  # by either stream
        self._running: dict[PortLink, asyncio.Task[None]] = {}
        self._tasks = asyncio.TaskGroup()
        self._flushing: asyncio.Task[None] | None = None

    async def run(self, messages: AsyncIterable[bytes]) -> str:
        """Serve the client until it leaves; return what it did wrong, nothing if all was well."""
        async with self._tasks:
            failure = await self._serve(messages)
            for task in (*self._running.values(), self._flushing):
                if task is not None:
                    task.cancel()
        return failure

    async def _serve(self, messages: AsyncIterable[bytes]) -> str:
        try:
            async for data in messages:
                for event in self._connection.receive(data):
                    await self._handle(event)
                self._flush_soon()
        except ProtocolError as error:
            self._connection.go_away(GoAwayStatus.PROTOCOL_ERROR)
            await self._outlet.flush()
            return str(error)
        return ""

    async def _handle(self, event: Event) -> None:
        link = self._links.get(event.stream)
        match event:
            case StreamOpened(stream, headers):
                try:
                    pair = self._pairs.add(stream, purpose(stream, headers))
                except PairingError:
                    self._connection.reset(stream, ResetStatus.REFUSED_STREAM)
                else:
                    self._open(stream, pair)
            case BytesReceived(stream, data) if link is not None and stream == link.pair.data:
                await self._put(link, data)
            case Ended(stream) if link is not None and stream == link.pair.data:
                link.inbox.end()
            case Dropped(stream) if link is not None and stream == link.pair.data:
                self._end(link)

    def _open(self, stream: int, pair: Pair) -> None:
        """Accept a stream: the first one of a link, or the one that completes it."""
        self._connection.accept(stream)
        link = self._links.get(pair.data) or self._links.get(pair.error)
        if link is None:
            link = PortLink(pair, self._outlet)
            task = self._running[link] = self._tasks.create_task(self._run(link))
            task.add_done_callback(lambda _: self._running.pop(link))
        self._links[stream] = link
        if not pair.missing:
            link.complete.set()

    async def _run(self, link: PortLink) -> None:
        try:
            await link.run(self._dial)
        finally:
            self._forget(link)
        await self._outlet.flush()

    async def _put(self, link: PortLink, data: bytes) -> None:
        """Pass bytes on; wait while the buffer is full."""
        if link.inbox.is_full and not link.complete.is_set():
            self._end(link)  # the second stream comes behind these bytes: to wait for it would be to wait for ever
        else:
            await link.inbox.put(data)

    def _end(self, link: PortLink) -> None:
        self._running[link].cancel()
        self._forget(link)

    def _forget(self, link: PortLink) -> None:
        """Close what is left of a link; the end of its error stream reports that to the client."""
        pair = link.pair
        link.inbox.close()
        self._pairs.drop(pair)
        self._connection.finish(pair.error)
        self._connection.reset(pair.data, ResetStatus.CANCEL)
        for stream in (pair.data, pair.error):
            self._links.pop(stream, None)

    def _flush_soon(self) -> None:
        """Send without waiting: a client that does not read now may still be sending."""
        if self._flushing is None or self._flushing.done():
            self._flushing = self._tasks.create_task(self._outlet.flush())
