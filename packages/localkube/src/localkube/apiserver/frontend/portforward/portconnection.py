"""Forwards a connection between a pair of client streams and a pod port.

The client opens a data stream and an error stream, in any order. Each direction ends separately. If the client has sent
all its data, the pod can still send, and vice versa.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

from kuberuntime import timeouts
from localkube.apiserver.frontend.spdy import Connection, Headers
from localkube.apiserver.streams.sockets import PIECE
from localkube.podaccess import NodeError

Send: TypeAlias = Callable[[bytes], Awaitable[None]]

StreamType: TypeAlias = Literal["data", "error"]

PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)

INBOX_LIMIT: Final = 32
"""The maximum number of client frames that wait for the pod. Frames of kubectl have 32 KiB."""

PATIENCE: Final = 30
"""The timeout for the second stream of a pair in seconds, as in Kubernetes."""

Dial: TypeAlias = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to a port of the pod."""


class LinkError(Exception):
    """The connection cannot be established. The message is sent to the client."""


class FrameSender:
    """Sends the pending bytes of a SPDY connection. `send` waits until the client has read enough."""

    def __init__(self, connection: Connection, send: Send) -> None:
        self._connection = connection
        self._send = send
        self._write_lock = asyncio.Lock()

    async def send(self, stream: int, data: bytes, *, fin: bool = False) -> None:
        """Send bytes on a stream. `fin` marks the last bytes."""
        self._connection.send(stream, data, fin=fin)
        await self.flush()

    async def flush(self) -> None:
        """Send all pending bytes, including bytes from later calls."""
        async with self._write_lock:
            while data := self._connection.take_output():
                await self._send(data)


class PortConnection:
    """A forwarded connection. `data` and `error` are its streams, or 0 if they are not open yet.

    The client's data is put into `inbox`, and an empty text at its end.
    """

    def __init__(self, request: str, port: int, outlet: FrameSender) -> None:
        self.request = request
        self.port = port
        self.data = self.error = 0
        self.inbox: asyncio.Queue[bytes] = asyncio.Queue(INBOX_LIMIT)
        self._is_complete = asyncio.Event()
        self._outlet = outlet

    @property
    def missing_stream(self) -> StreamType | None:
        """Return the type of the stream that is not yet open."""
        if not self.data:
            return "data"
        return None if self.error else "error"

    def add(self, stream: int, kind: StreamType, port: int) -> bool:
        """Add a stream of the client. Return whether it belongs to this connection."""
        if port != self.port or getattr(self, kind):
            return False
        setattr(self, kind, stream)
        if not self.missing_stream:
            self._is_complete.set()
        return True

    async def run(self, dial: Dial) -> None:
        """Wait for the second stream, connect, and forward bytes until both directions are closed."""
        try:
            await self._wait_for_second_stream()
            reader, writer = await connect(dial, self.port)
        except LinkError as error:
            await self._outlet.send(self.error, str(error).encode())
            return
        try:
            async with asyncio.TaskGroup() as directions:
                delivering = directions.create_task(_deliver(self.inbox, writer))
                if not await self._forward_response(reader):
                    delivering.cancel()  # the pod aborted the connection in both directions
        except asyncio.CancelledError:
            writer.transport.abort()  # unread data for the pod is dropped
            raise
        finally:
            writer.close()

    async def _wait_for_second_stream(self) -> None:
        try:
            async with timeouts.within(PATIENCE):
                await self._is_complete.wait()
        except TimeoutError as error:
            text = f"request {self.request}: the {self.missing_stream} stream was not created within {PATIENCE} s"
            raise LinkError(text) from error

    async def _forward_response(self, reader: asyncio.StreamReader) -> bool:
        """Send the output of the pod until it closes the connection. Return whether it was closed normally."""
        try:
            while data := await reader.read(PIECE):
                await self._outlet.send(self.data, data)
        except OSError:
            return False
        await self._outlet.send(self.data, b"", fin=True)
        return True


def parse_stream_headers(stream: int, headers: Headers) -> tuple[str, StreamType, int] | None:
    """Return the request, type and port in the headers of a stream, or None if they are invalid.

    Clients that do not send a request ID open the error stream, then the data stream.

    >>> parse_stream_headers(3, {"streamtype": "data", "port": "80"}) == ("1", "data", 80)
    True
    """
    port = headers.get("port", "")
    if not PORT.fullmatch(port) or not 0 < int(port) < 65536:
        return None
    match headers.get("streamtype"):
        case "data":
            return headers.get("requestid") or str(stream - 2), "data", int(port)
        case "error":
            return headers.get("requestid") or str(stream), "error", int(port)
        case _:
            return None


async def connect(dial: Dial, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a port of the pod. Raise a `LinkError` with the reason if the connection fails."""
    try:
        return await dial(port)
    except (NodeError, OSError) as error:
        raise LinkError(f"error forwarding port {port}: {error}") from error


async def _deliver(inbox: asyncio.Queue[bytes], writer: asyncio.StreamWriter) -> None:
    try:
        while data := await inbox.get():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:  # the pod no longer reads, but its output is still sent to the client
        while await inbox.get():
            continue
