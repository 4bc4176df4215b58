"""Forwards ports of a pod through one tunnel, for kubectl: SPDY/3.1 inside a WebSocket, with many connections.

In: the bytes of the client, and a function that connects to a port of the pod. Out: bytes for the client. Every
connection is a pair of streams (`pairing.py`) with its own task (`portlink.py`). If the pod refuses a connection, the
reason is sent on the error stream of that pair, and the others continue.

There is no flow control by stream. Data that a pod does not read waits in the inbox of its connection. Once that is
full, the client has to wait, and with it the other connections of its tunnel. If the client is killed meanwhile, this
is detected when the pod reads again or ends.
"""

import asyncio
from collections.abc import AsyncIterable

from localkube.apiserver.front.portforward.pairing import Pair, PairingError, Pairs, purpose
from localkube.apiserver.front.portforward.portlink import Dial, Outlet, PortLink, Send
from localkube.apiserver.front.spdy.connection import BytesReceived, Connection, Dropped, Ended, Event, StreamOpened
from localkube.apiserver.front.spdy.frames import GoAwayStatus, ResetStatus
from localkube.apiserver.front.spdy.headers import ProtocolError


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
        """Serve the client until it disconnects; return its violation of the protocol, empty if there was none."""
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
        """Accept a stream, which starts a link or completes one."""
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
        if link.inbox.is_full and not link.complete.is_set():
            self._end(link)  # the second stream comes after these bytes, so waiting for it would never end
        else:
            await link.inbox.put(data)

    def _end(self, link: PortLink) -> None:
        self._running[link].cancel()
        self._forget(link)

    def _forget(self, link: PortLink) -> None:
        """Close the streams of a link; the end of its error stream reports that to the client."""
        pair = link.pair
        link.inbox.close()
        self._pairs.drop(pair)
        self._connection.finish(pair.error)
        self._connection.reset(pair.data, ResetStatus.CANCEL)
        for stream in (pair.data, pair.error):
            self._links.pop(stream, None)

    def _flush_soon(self) -> None:
        """Send in the background: a client that does not read now may still be sending."""
        if self._flushing is None or self._flushing.done():
            self._flushing = self._tasks.create_task(self._outlet.flush())
