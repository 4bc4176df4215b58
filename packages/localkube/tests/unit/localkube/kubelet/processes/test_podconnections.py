"""Tests the HTTP client for probes and hooks with real servers on the loopback address."""

import asyncio
import os
import socket

import pytest

from localkube.kubelet.processes import podconnections
from localkube.kubelet.processes.podconnections import Get
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner


class HostRunner(SimulatedRunner):
    """Connects over the host network."""

    async def open_socket(self, sandbox_id: str | None) -> socket.socket:
        sock = socket.socket()
        sock.setblocking(False)
        return sock


async def exchange(answer: bytes, *, hang: bool = False, **fields: str) -> tuple[bytes, tuple[int, bytes]]:
    """Send a request to a server that returns this response. Return the request and the parsed response."""
    asked = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set_result(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        if hang:
            await done.wait()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await podconnections.get(HostRunner(), Get(host="127.0.0.1", port=port, headers=fields))
        done.set()
        return await asked, found


def test_status_and_body_are_parsed() -> None:
    _, found = asyncio.run(exchange(b"HTTP/1.1 204 No Content\r\n\r\nbody"))
    assert found == (204, b"body")


def test_answer_with_its_length_is_complete_without_a_close() -> None:
    _, found = asyncio.run(exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", hang=True))
    assert found == (200, b"body")


def test_probe_headers_replace_the_defaults() -> None:
    asked, _ = asyncio.run(exchange(b"HTTP/1.0 200 OK\r\n\r\n", host="example.com", Accept="x/y"))
    lines = asked.decode().split("\r\n")
    assert lines[0] == "GET / HTTP/1.1"
    assert {"Host: example.com", "Accept: x/y", "Connection: close"} < set(lines)
    assert sum(line.startswith("Host:") for line in lines) == 1


@pytest.mark.parametrize("answer", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_malformed_http_is_a_connection_error(answer: bytes) -> None:
    with pytest.raises(ConnectionError, match="malformed HTTP response"):
        asyncio.run(exchange(answer))


async def test_refused_connection_closes_its_socket() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            await podconnections.connect(HostRunner(), None, unused.getsockname())


async def test_refused_connection_has_a_message() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError) as caught:
            await podconnections.connect(HostRunner(), None, bound.getsockname())
    assert caught.value.strerror == "Connection refused"


def test_listening_ports_of_a_process_are_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname()[1] in podconnections.listening_ports(os.getpid())
    assert podconnections.listening_ports(0) == []
