"""Connects to the networks of pods, and contains a minimal HTTP client for probes and hooks."""

import asyncio
import os
import ssl
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct, field

from localkube.kubelet.processes.runner import ProcessRunner
from localkube.wellknown import KUBERNETES_VERSION

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

LONGEST_BODY: Final = 10 * 1024
"""The maximum number of bytes read from a response."""

LISTENS: Final = "0A"
"""The state of a listening socket in /proc/net/tcp."""

USER_AGENT: Final = "kube-probe/{}.{}".format(*KUBERNETES_VERSION)


class Get(Struct, frozen=True, kw_only=True):
    """One HTTP GET."""

    host: str
    port: int
    path: str = "/"
    uses_tls: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Return the URL of the request, for messages."""
        return f"{'https' if self.uses_tls else 'http'}://{self.host}:{self.port}{self.path}"


async def connect(
    runner: ProcessRunner, sandbox_id: str | None, address: tuple[str, int], tls: ssl.SSLContext | None = None
) -> Streams:
    """Connect from a pod's network, or from the shared network if it is None. Raise OSError on failure."""
    sock = await runner.open_socket(sandbox_id)
    try:
        await asyncio.get_running_loop().sock_connect(sock, address)
    except BaseException as error:  # also after cancellation, because the socket must be closed
        sock.close()
        if isinstance(error, OSError) and error.errno:
            raise OSError(error.errno, os.strerror(error.errno)) from error  # asyncio does not include the reason
        raise
    name = address[0] if tls else None
    return await asyncio.open_connection(sock=sock, ssl=tls, server_hostname=name)


def listening_ports(pid: int) -> list[int]:
    """Return the listening TCP ports in the network of a process, or an empty list if it has exited."""
    ports = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            rows = (line.split() for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:])
            ports |= {bytes.fromhex(row[1].rpartition(":")[2]) for row in rows if row[3] == LISTENS}
    return sorted(int.from_bytes(port) for port in ports)


async def get(runner: ProcessRunner, request: Get) -> tuple[int, bytes]:
    """Send one GET request, and return the status and part of the body. Redirects are not followed."""
    tls = _unverified_context() if request.uses_tls else None
    reader, writer = await connect(runner, None, (request.host, request.port), tls)
    try:
        writer.write(_encode(request))
        await writer.drain()
        return _decode(await _read_all(reader))
    finally:
        writer.close()


def _unverified_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _encode(request: Get) -> bytes:
    default = {"Host": f"{request.host}:{request.port}", "User-Agent": USER_AGENT, "Accept": "*/*"}
    own = {name.title(): value for name, value in request.headers.items()}
    headers = default | own | {"Connection": "close"}
    lines = [f"GET {request.path or '/'} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    response = b""
    while len(response) < LONGEST_BODY and (piece := await reader.read(LONGEST_BODY)):
        response += piece
        if _is_complete(response):
            break
    return response


def _is_complete(response: bytes) -> bool:
    """Return whether the announced length has been read, because servers can keep the connection open."""
    head, separator, body = response.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if separator and name.strip().lower() == b"content-length" and value.strip().isdigit():
            return len(body) >= int(value)
    return False


def _decode(response: bytes) -> tuple[int, bytes]:
    head, _, body = response.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ConnectionError(f"malformed HTTP response {head[:40]!r}")
    return int(words[1]), body
