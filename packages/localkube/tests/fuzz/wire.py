"""Runs a server with a socket, and generates HTTP/1.1, WebSocket frames, and SPDY inside WebSockets."""

import asyncio
import logging
import struct
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import quote, urlencode

from tests.fuzz import junk, requests, running
from tests.unit.localkube.apiserver.frontend.spdyframes import data_frame, ping, rst_stream, syn_stream
from tests.unit.localkube.apiserver.frontend.test_podstreams import EchoSession, FakeNode

from kuberuntime.client.transport import Request
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.frontend.http import HttpServer
from localkube.apiserver.frontend.spdy import FrameWriter
from localkube.podaccess import ExecSession

TOKEN: Final = "the-token"
PATIENCE: Final = 60.0
"""The response timeout in seconds, which is sufficient on a busy machine."""

QUIET: Final = 0.05
"""The idle time in seconds after which a client disconnects.

The server may be waiting for the rest of a damaged request.
"""

POD: Final = "/api/v1/namespaces/default/pods/web"
BODY: Final = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"nodeName":"n","containers":[{"name":"main","image":"i"}]}}'


class Records(logging.Handler):
    """Collects logged errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        self.found.append(f"{record.getMessage()}\n{trace}")


class Session(EchoSession):
    """A command that writes its input to the output, and does not accept data after the end of the input."""

    async def write(self, data: bytes) -> None:
        if not self.stdout.at_eof() and not self.killed.is_set() and not self._ended.is_set():
            await super().write(data)

    async def close_stdin(self) -> None:
        if not self._ended.is_set():
            await super().close_stdin()


class Node(FakeNode):
    """A node that creates a separate session for each command."""

    async def exec(
        self, pod: JSONObject, container: str, command: tuple[str, ...], *, stdin: bool, tty: bool
    ) -> ExecSession:
        await super().exec(pod, container, command, stdin=stdin, tty=tty)
        return Session()


@contextmanager
def errors() -> Iterator[list[str]]:
    """Collect all logged errors."""
    records = Records()
    logging.getLogger().addHandler(records)
    try:
        with running.tracebacks() as logged:
            yield records.found
            records.found += logged
    finally:
        logging.getLogger().removeHandler(records)


@dataclass
class Wire:
    """A server that listens on a socket."""

    port: int

    async def exchange(self, content: bytes, *more: bytes, patience: float = QUIET) -> bytes:
        """Send bytes. Return the response until the server closes the connection or stops sending."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(content)
            for piece in more:
                writer.write(piece)
            return await _everything(reader, patience)
        finally:
            writer.close()

    async def plain(self) -> bytes:
        """Return the response to a request that does not upgrade the connection."""
        return await self.exchange(head(self.port, "GET", POD, {"connection": "close"}), patience=PATIENCE)


async def _everything(reader: asyncio.StreamReader, patience: float) -> bytes:
    received = b""
    try:
        while True:
            async with asyncio.timeout(patience):
                piece = await reader.read(65536)
            received += piece
            if not piece:
                return received
    except (TimeoutError, ConnectionError):
        return received


@asynccontextmanager
async def listening() -> AsyncIterator[Wire]:
    """Run a server with one pod on a socket."""
    api = await running.start(0)
    api.attach_node(Node())
    created = await api.handle(
        Request("POST", "/api/v1/namespaces/default/pods", (), {"content-type": "application/json"}, BODY), "admin"
    )
    assert created.status == 201, created
    server = HttpServer(api, token=TOKEN)
    try:
        yield Wire(await server.start())
    finally:
        await server.stop()
        await api.close()


def head(port: int, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """Return the encoded request."""
    whole = {
        "Host": f"127.0.0.1:{port}",
        "Authorization": f"Bearer {TOKEN}",
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in whole.items())
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "surrogateescape") + body


def raw_request(random: Random, port: int, made: Request) -> bytes:
    """Return the bytes of a request, which are either valid or corrupted."""
    query = [(name, value) for name, value in made.query if name not in {"watch", "follow"}]
    target = quote(made.path, safe="/%") + (f"?{urlencode(query)}" if query else "")
    headers = {name: value for name, value in made.headers.items() if "\xff" not in value or random.random() < 0.5}
    headers = {"connection": "close", **headers}
    body = made.body
    match random.randrange(12):
        case 0:
            headers["authorization"] = random.choice(
                ("Bearer \udcff", "Bearer", "", "Basic eA==", "Bearer \x00", "\udcff")
            )
        case 1 | 2:
            headers["content-encoding"], body = requests.compressed(random, body)
        case 3:
            headers["content-encoding"] = random.choice(("br", "zstd", "gzip, deflate", "odd", "\udcff"))
        case 4:
            headers["Host"] = random.choice(("", "example.com", "\udcff", f"localhost:{port}", "127.0.0.1"))
        case 5:
            headers[random.choice(("origin", "sec-fetch-site", "expect", "transfer-encoding", "upgrade"))] = (
                random.choice(("null", "100-continue", "chunked", "websocket", "h2c", "SPDY/3.1", "\udcff", ""))
            )
        case 6:
            target = random.choice(
                (
                    target + "?%ff=%00",
                    "*",
                    "//x",
                    "http://x/" + target,
                    target + "?" + "a&" * 300,
                    "/" + "a" * 9000,
                    target + "#x",
                )
            )
    content = head(port, made.method if made.method.isalpha() else "GET", target, headers, body)
    return junk.damaged(random, content) if random.random() < 0.1 else content


def upgrade(port: int, path: str, protocol: str) -> bytes:
    """Return the bytes of a WebSocket request."""
    headers = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": protocol,
    }  # fmt: skip
    return head(port, "GET", path, headers)


def frame(random: Random, payload: bytes, opcode: int = 2) -> bytes:
    """Return a client frame that is complete in most cases."""
    mask = random.randbytes(4)
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    first = 0x80 | opcode
    if len(payload) < 126:
        return bytes((first, 0x80 | len(payload))) + mask + masked
    return bytes((first, 0x80 | 126)) + struct.pack(">H", len(payload)) + mask + masked


def channel_frames(random: Random) -> list[bytes]:
    """Return the client frames for `/exec`, `/attach` or port forwarding over channels."""
    sizes = (
        b'{"Width":80,"Height":24}',
        b'{"Width":-1}',
        b'{"Width":99999999999}',
        b"{",
        b"\xff",
        b"[]",
        b'{"Width":"x"}',
        b"null",
        b"1e999",
    )
    payloads = (
        b"", b"\x00", b"\x00hello", b"\x01x", b"\x02x", b"\x03{}", b"\xff\x00", b"\xff", b"\xff\x09", b"\x63x",
        *(b"\x04" + size for size in sizes),
    )  # fmt: skip
    return _frames(random, [random.choice(payloads) for _ in range(random.randrange(6))])


def spdy_frames(random: Random) -> list[bytes]:
    """Return the client frames of a tunnel, which contain SPDY."""
    writer = FrameWriter()
    pieces: list[bytes] = []
    for _ in range(random.randrange(8)):
        stream = random.choice((1, 1, 3, 5, 2, 7, 2**31 - 1))
        headers = {
            "streamtype": random.choice(("data", "error", "odd")),
            "port": random.choice(("1", "0", "x", "80", "9" * 5000, "99999", "-1")),
            "requestid": random.choice(("0", "1", "x", "")),
        }
        if random.random() < 0.2:
            headers.pop(random.choice(sorted(headers)))
        piece = writer.write(
            random.choice(
                (
                    syn_stream(stream, headers), syn_stream(stream, headers), data_frame(stream, b"hello"), data_frame(stream, b"", fin=True),
                    rst_stream(stream, random.randrange(12)), ping(random.randrange(5)),
                )
            )
        )  # fmt: skip
        pieces.append(junk.damaged(random, piece) if random.random() < 0.15 else piece)
    return _frames(random, pieces)


def _frames(random: Random, payloads: list[bytes]) -> list[bytes]:
    opcodes = (2, 2, 2, 2, 2, 2, 1, 0, 8, 9, 10, 3)
    frames = [frame(random, payload, random.choice(opcodes)) for payload in payloads]
    if frames and random.random() < 0.15:
        frames[-1] = junk.damaged(random, frames[-1])
    return frames if random.random() < 0.5 else [*frames, frame(random, b"\x03\xe8", 8)]


def descriptors() -> int:
    """Return the number of open files in this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
