"""Forwards pod ports for kubectl through a tunnel with many connections: SPDY/3.1 inside a WebSocket.

In: the bytes of the client, and a function that connects to a port of the pod. Out: bytes for the client. Every
connection is a pair of streams with its own task (`portconnection.py`). If the pod refuses a connection, the reason is sent
on the error stream of that pair, and the other connections continue.

There is no flow control per stream. Data that a pod does not read waits in the inbox of its connection. When the inbox
is full, the client and all connections of its tunnel wait. If the client is killed in the meantime, this is detected
when the pod reads again or terminates.
"""

import asyncio
from collections.abc import AsyncIterable

from localkube.apiserver.frontend.portforward.portconnection import (
    Dial,
    FrameSender,
    PortConnection,
    Send,
    parse_stream_headers,
)
from localkube.apiserver.frontend.spdy import Connection, Frame, ProtocolError, Status, Type


class Tunnel:
    """The tunnel of a client to a pod, which exists while `run` is active."""

    def __init__(self, dial: Dial, send: Send) -> None:
        self._dial = dial
        self._connection = Connection()
        self._outlet = FrameSender(self._connection, send)
        self._incomplete: dict[str, PortConnection] = {}  # by request ID, until the second stream is open
        self._links: dict[int, PortConnection] = {}  # by the ID of either stream
        self._running: dict[PortConnection, asyncio.Task[None]] = {}
        self._tasks = asyncio.TaskGroup()
        self._flushing: asyncio.Task[None] | None = None

    async def run(self, messages: AsyncIterable[bytes]) -> str:
        """Serve the client until it disconnects. Return its protocol violation, or an empty string."""
        async with self._tasks:
            failure = await self._serve(messages)
            for task in (*self._running.values(), self._flushing):
                if task is not None:
                    task.cancel()
        return failure

    async def _serve(self, messages: AsyncIterable[bytes]) -> str:
        try:
            async for data in messages:
                for frame in self._connection.receive(data):
                    await self._handle(frame)
                if self._flushing is None or self._flushing.done():
                    # in the background, because a client that does not read can still send data
                    self._flushing = self._tasks.create_task(self._outlet.flush())
        except ProtocolError as error:
            await self._outlet.flush()
            return str(error)
        return ""

    async def _handle(self, frame: Frame) -> None:
        if frame.type is Type.SYN_STREAM:
            self._open(frame)
        link = self._links.get(frame.stream)
        if link is None or frame.stream != link.data:
            return
        if frame.type is Type.RST_STREAM:
            self._close_link(link)
            return
        for data in (*([frame.data] if frame.data else []), *([b""] if frame.fin else [])):
            if link.inbox.full() and link.missing_stream:
                self._close_link(link)  # waiting would block forever, because the second stream follows these bytes
                return
            await link.inbox.put(data)

    def _open(self, frame: Frame) -> None:
        """Accept a stream that starts or completes a link. Reject other streams."""
        stream_purpose = parse_stream_headers(frame.stream, frame.headers)
        request, kind, port = stream_purpose or ("", "data", 0)
        link = self._incomplete.get(request) or PortConnection(request, port, self._outlet)
        if stream_purpose is None or not link.add(frame.stream, kind, port):
            self._connection.reset(frame.stream, Status.REFUSED_STREAM)
            return
        self._connection.accept(frame.stream)
        self._links[frame.stream] = link
        if not link.missing_stream:
            del self._incomplete[request]
            return
        self._incomplete[request] = link
        task = self._running[link] = self._tasks.create_task(self._run(link))
        task.add_done_callback(lambda _: self._running.pop(link))

    async def _run(self, link: PortConnection) -> None:
        try:
            await link.run(self._dial)
        finally:
            self._close_streams(link)
        await self._outlet.flush()

    def _close_link(self, link: PortConnection) -> None:
        self._running[link].cancel()
        self._close_streams(link)

    def _close_streams(self, link: PortConnection) -> None:
        """Close the streams of a link. Closing the error stream notifies the client."""
        if self._incomplete.get(link.request) is link:
            del self._incomplete[link.request]
        self._connection.send(link.error, b"", fin=True)
        self._connection.reset(link.data, Status.CANCEL)
        for stream in (link.data, link.error):
            self._links.pop(stream, None)
        while not link.inbox.empty():  # unblock a waiting writer
            link.inbox.get_nowait()
