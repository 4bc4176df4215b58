"""Connects an in-memory client to pods that are simulated by servers in this process."""

import asyncio
import errno
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from tests.unit.localkube.apiserver.frontend.spdyframes import data_frame, ping, rst_stream, syn_reply, syn_stream

from localkube.apiserver.frontend.portforward.portconnection import INBOX_LIMIT
from localkube.apiserver.frontend.portforward.tunnel import Tunnel
from localkube.apiserver.frontend.spdy import Frame, FrameReader, FrameWriter, Status, Type
from localkube.podaccess import NodeError

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Pod = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MEGABYTES = 8
PIECE = bytes(range(256)) * 128


class Client:
    """A client and its tunnel. Received frames are grouped by stream."""

    def __init__(self, dial: Callable[[int], Awaitable[Streams]]) -> None:
        self.left: list[Frame] = []
        self._toward: asyncio.Queue[bytes] = asyncio.Queue(maxsize=4)
        self._back: dict[int, asyncio.Queue[Frame]] = {}
        self._writer, self._reader = FrameWriter(), FrameReader()
        self._tunnel = Tunnel(dial, self._hear)
        self._last = -1

    async def run(self) -> str:
        return await self._tunnel.run(self._messages())

    async def tell(self, *frames: Frame) -> None:
        for frame in frames:
            await self._toward.put(self._writer.write(frame))

    async def leave(self) -> None:
        await self._toward.put(b"")

    async def heard(self, stream: int = 0) -> Frame:
        return await self._stream(stream).get()

    async def open(self, kind: str, request: str, port: int = 80, *, fin: bool = False) -> int:
        self._last += 2
        headers = {"streamtype": kind, "port": str(port), "requestid": request}
        await self.tell(syn_stream(self._last, headers, fin=fin))
        return self._last

    async def connect(self, request: str, port: int = 80) -> tuple[int, int]:
        """Open both streams in the same way as kubectl. Return the data stream and the error stream."""
        error = await self.open("error", request, port)
        await self.tell(data_frame(error, b"", fin=True))
        data = await self.open("data", request, port)
        assert [await self.heard(error), await self.heard(data)] == [syn_reply(error), syn_reply(data)]
        return data, error

    async def read(self, stream: int) -> bytes:
        """Return all data of a stream."""
        text = bytearray()
        while True:
            frame = await self.heard(stream)
            assert frame.type is Type.DATA, frame
            text += frame.data
            if frame.fin:
                return bytes(text)

    async def _messages(self) -> AsyncIterator[bytes]:
        while data := await self._toward.get():
            yield data

    async def _hear(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            self._stream(0 if frame.type is Type.PING else frame.stream).put_nowait(frame)

    def _stream(self, number: int) -> "asyncio.Queue[Frame]":
        return self._back.setdefault(number, asyncio.Queue())


@asynccontextmanager
async def serving(pod: Pod) -> AsyncIterator[Client]:
    """Run a pod, and a client with a tunnel to it. At the end, the client disconnects without an error."""
    async with asyncio.timeout(60), await asyncio.start_server(_closing(pod), "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()

        async def dial(port: int) -> Streams:
            if port == 81:
                raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
            if port == 82:
                raise NodeError('pod "web" is not running')
            return await asyncio.open_connection(*address)

        client = Client(dial)
        running = asyncio.create_task(client.run())
        yield client
        await client.leave()
        assert await running == ""


def _closing(pod: Pod) -> Pod:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await pod(reader, writer)
        finally:
            writer.close()

    return serve


async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond after the client has closed its side of the connection."""
    writer.write((await reader.read()).upper())
    await writer.drain()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Return the input immediately."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def test_half_close_of_the_client_keeps_the_answer() -> None:
    async with serving(shout) as client:
        data, error = await client.connect("0")
        await client.tell(data_frame(data, b"hel"), data_frame(data, b"lo", fin=True))
        assert await client.read(data) == b"HELLO"
        assert await client.read(error) == b""


async def test_half_close_of_the_pod_keeps_the_request() -> None:
    rest = asyncio.get_running_loop().create_future()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.write_eof()
        rest.set_result(await reader.read())

    async with serving(greet) as client:
        data, error = await client.connect("0")
        assert await client.read(data) == b"hello"
        await client.tell(data_frame(data, b"more"), data_frame(data, b"", fin=True))
        assert await rest == b"more"
        assert await client.read(error) == b""


async def test_megabytes_are_sent_in_both_directions_at_once() -> None:
    async with serving(echo) as client, asyncio.TaskGroup() as tasks:
        data, _ = await client.connect("0")
        reading = tasks.create_task(client.read(data))
        for _ in range(MEGABYTES * 2**20 // len(PIECE)):
            await client.tell(data_frame(data, PIECE))
        await client.tell(data_frame(data, b"", fin=True))
        assert await reading == PIECE * (MEGABYTES * 2**20 // len(PIECE))


async def test_connections_share_a_tunnel() -> None:
    async with serving(echo) as client:
        pairs = [await client.connect(str(index)) for index in range(100)]
        for index, (data, _) in enumerate(pairs):
            await client.tell(data_frame(data, b"%d" % index, fin=True))
        assert [await client.read(data) for data, _ in reversed(pairs)] == [b"%d" % n for n in range(99, -1, -1)]
        assert {await client.read(error) for _, error in pairs} == {b""}


@pytest.mark.parametrize(
    ("port", "text"),
    [
        (81, b"error forwarding port 81: [Errno 111] Connection refused"),
        (82, b'error forwarding port 82: pod "web" is not running'),
    ],
)
async def test_unreachable_port_is_an_error_and_the_next_one_works(port: int, text: bytes) -> None:
    async with serving(shout) as client:
        data, error = await client.connect("0", port)
        assert await client.read(error) == text
        assert await client.heard(data) == rst_stream(data, Status.CANCEL)
        data, error = await client.connect("1")
        await client.tell(data_frame(data, b"still here", fin=True))
        assert await client.read(data) == b"STILL HERE"


def greeting(broken: asyncio.Event) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Return a server that sends a greeting, and records when its client disconnects."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        with suppress(ConnectionError):
            await reader.read()
        broken.set()

    return greet


async def test_connection_reset_by_the_client_is_aborted() -> None:
    broken = asyncio.Event()

    async with serving(greeting(broken)) as client:
        data, error = await client.connect("0")
        assert await client.heard(data) == data_frame(data, b"hello")
        await client.tell(rst_stream(data, Status.CANCEL))
        assert await client.read(error) == b""
        await broken.wait()


async def test_leaving_client_aborts_its_connections() -> None:
    broken = asyncio.Event()

    async with serving(greeting(broken)) as client:
        data, _ = await client.connect("0")
        await client.heard(data)
        await client.open("error", "waits for its partner")
    async with asyncio.timeout(60):
        await broken.wait()


async def test_connection_aborted_by_the_pod_is_reset() -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with serving(break_off) as client:
        data, error = await client.connect("0")
        assert await client.heard(data) == rst_stream(data, Status.CANCEL)
        assert await client.read(error) == b""


async def test_unread_data_waits_and_arrives_completely() -> None:
    begin = asyncio.Event()

    async def hesitate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await begin.wait()
        await shout(reader, writer)

    async with serving(hesitate) as client, asyncio.TaskGroup() as tasks:
        slow, _ = await client.connect("slow")
        sent = b"x" * len(PIECE)

        async def upload() -> None:
            for _ in range(MEGABYTES * 2**20 // len(sent)):
                await client.tell(data_frame(slow, sent))
            await client.tell(data_frame(slow, b"", fin=True))

        tasks.create_task(upload())
        begin.set()
        assert await client.read(slow) == b"X" * MEGABYTES * 2**20


async def test_protocol_violation_is_explained_to_the_client() -> None:
    async def dial(port: int) -> Streams:
        raise NodeError("nobody asks")

    client = Client(dial)
    running = asyncio.create_task(client.run())
    await client.open("error", "0")
    await client.tell(syn_stream(2))
    assert await client.heard(1) == syn_reply(1)
    assert await running == "stream 2 was opened after stream 1. Stream IDs must be odd and increasing"


async def test_malformed_stream_is_rejected_alone() -> None:
    async with serving(shout) as client:
        wrong = await client.open("stdout", "0")
        assert await client.heard(wrong) == rst_stream(wrong, Status.REFUSED_STREAM)
        await client.tell(ping(7))
        assert await client.heard() == ping(7)


async def test_data_beyond_the_buffer_ends_an_unpaired_stream() -> None:
    async with serving(shout) as client:
        data = await client.open("data", "0")
        assert await client.heard(data) == syn_reply(data)
        await client.tell(*[data_frame(data, b"more")] * (INBOX_LIMIT + 1))
        assert await client.heard(data) == rst_stream(data, Status.CANCEL)


async def test_data_before_the_second_stream_is_kept() -> None:
    async with serving(shout) as client:
        data = await client.open("data", "0")
        await client.tell(data_frame(data, b"early", fin=True))
        await client.open("error", "0")
        assert await client.heard(data) == syn_reply(data)
        assert await client.read(data) == b"EARLY"


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (
            "error",
            [data_frame(1, b"request 7: the data stream was not created within 30 s"), data_frame(1, b"", fin=True)],
        ),
        ("data", [rst_stream(1, Status.CANCEL)]),
    ],
)
async def test_unpaired_stream_is_closed_after_30_seconds(kind: str, told: list[Frame]) -> None:
    async def dial(port: int) -> Streams:
        raise NodeError("nobody asks")

    client = Client(dial)
    running = asyncio.create_task(client.run())
    stream = await client.open(kind, "7")
    assert await client.heard(stream) == syn_reply(stream)
    assert [await client.heard(stream) for _ in told] == told
    assert asyncio.get_running_loop().time() == pytest.approx(30)
    await client.leave()
    assert await running == ""


@pytest.mark.parametrize(
    ("kind", "port", "request_id"),
    [
        ("stdout", "80", "1"),
        ("data", "0", "1"),
        ("data", "65536", "1"),
        ("data", "http", "1"),
        ("data", "", "1"),
        ("error", "80", "0"),
        ("data", "81", "0"),
    ],
    ids=["type", "no port", "large port", "name", "empty", "the same again", "another port"],
)
async def test_stream_without_a_pair_is_rejected_and_pairs_continue(kind: str, port: str, request_id: str) -> None:
    async with serving(shout) as client:
        error = await client.open("error", "0")
        assert await client.heard(error) == syn_reply(error)
        wrong = error + 2
        await client.tell(syn_stream(wrong, {"streamtype": kind, "port": port, "requestid": request_id}))
        assert await client.heard(wrong) == rst_stream(wrong, Status.REFUSED_STREAM)
        await client.tell(syn_stream(wrong + 2, {"streamtype": "data", "port": "80", "requestid": "0"}, fin=True))
        assert await client.read(error) == b""


async def test_streams_without_request_ids_are_paired_by_order() -> None:
    async with serving(shout) as client:
        await client.tell(syn_stream(5, {"streamtype": "error", "port": "80"}))
        await client.tell(syn_stream(7, {"streamtype": "data", "port": "80"}), data_frame(7, b"hello", fin=True))
        assert [await client.heard(5), await client.heard(7)] == [syn_reply(5), syn_reply(7)]
        assert await client.read(7) == b"HELLO"
