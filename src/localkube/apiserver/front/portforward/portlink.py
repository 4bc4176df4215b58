"""One forwarded connection: the client's pair of streams on one side, a connection to a pod's port on the other.

Each direction ends separately: the end of the client's data is passed on while the pod may still send, and vice versa.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from kuberuntime import timeouts
from localkube.apiserver.front.portforward.pairing import Pair
from localkube.apiserver.front.spdy.connection import Connection
from localkube.apiserver.streams.sockets import PIECE
from localkube.podaccess import NodeError

Send: TypeAlias = Callable[[bytes], Awaitable[None]]


class Outlet:
    """Sends the pending bytes of a SPDY connection. `send` returns when the client has read enough."""

    def __init__(self, connection: Connection, send: Send) -> None:
        self._connection = connection
        self._send = send
        self._turn = asyncio.Lock()

    async def send(self, stream: int, data: bytes) -> None:
        """Send bytes on a stream."""
        self._connection.send(stream, data)
        await self.flush()

    async def finish(self, stream: int) -> None:
        """Send nothing more on a stream."""
        self._connection.finish(stream)
        await self.flush()

    async def flush(self) -> None:
        """Send all pending bytes, also those that are added meanwhile."""
        async with self._turn:
            while data := self._connection.take():
                await self._send(data)


INBOX_LIMIT: Final = 2**20
"""Bytes above which `put` waits; the last part may exceed them."""


class Inbox:
    """The buffered bytes for one connection."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._closed = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_full(self) -> bool:
        """Return whether `put` would wait."""
        return not self._room.is_set()

    async def put(self, data: bytes) -> None:
        """Add bytes; wait while the buffer is full."""
        await self._room.wait()
        if not self._closed:
            self._pieces.append(data)
            self._resize(len(data))
            self._filled.set()

    def end(self) -> None:
        """End the buffer: nothing more will be put."""
        self._ended = True
        self._filled.set()

    def close(self) -> None:
        """Drop the contents and everything put from now on; `get` returns the end."""
        self._closed = True
        self._pieces.clear()
        self.end()
        self._resize(-self._size)

    async def get(self) -> bytes:
        """Return the next bytes, empty at the end."""
        await self._filled.wait()
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        self._resize(-len(piece))
        if not self._pieces and not self._ended:
            self._filled.clear()
        return piece

    def _resize(self, delta: int) -> None:
        self._size += delta
        if self._size < INBOX_LIMIT:
            self._room.set()
        else:
            self._room.clear()


PATIENCE: Final = 30
"""Seconds that a stream waits for the other one of its pair, as in Kubernetes."""

Dial: TypeAlias = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to a port of the pod."""


class LinkError(Exception):
    """The connection cannot be made; the text is for the client."""


class PortLink:
    """One forwarded connection. `complete` is set when its pair is complete; the client's data is put into `inbox`."""

    def __init__(self, pair: Pair, outlet: Outlet) -> None:
        self.pair = pair
        self.inbox = Inbox()
        self.complete = asyncio.Event()
        self._outlet = outlet

    async def run(self, dial: Dial) -> None:
        """Wait for the second stream, connect, and forward bytes until both directions have ended."""
        try:
            await self._await_partner()
            reader, writer = await connect(dial, self.pair.port)
        except LinkError as error:
            await self._outlet.send(self.pair.error, str(error).encode())
            return
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_deliver(self.inbox, writer))
                await self._answer(reader)
        except asyncio.CancelledError:
            writer.transport.abort()  # data that the pod has not read yet is dropped
            raise
        finally:
            writer.close()

    async def _await_partner(self) -> None:
        try:
            async with timeouts.within(PATIENCE):
                await self.complete.wait()
        except TimeoutError as error:
            text = f"request {self.pair.request}: no {self.pair.missing} stream came within {PATIENCE} s"
            raise LinkError(text) from error

    async def _answer(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(PIECE):
                await self._outlet.send(self.pair.data, data)
        except OSError:
            self.inbox.close()  # the pod broke the connection: both directions have ended
        else:
            await self._outlet.finish(self.pair.data)


async def connect(dial: Dial, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a port of the pod; raise `LinkError` with the reason if that fails."""
    try:
        return await dial(port)
    except (NodeError, OSError) as error:
        raise LinkError(f"error forwarding port {port}: {error}") from error


async def _deliver(inbox: Inbox, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await inbox.get():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        inbox.close()  # the pod reads no more; what it has sent still goes to the client
