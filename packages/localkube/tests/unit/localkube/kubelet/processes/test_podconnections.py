"""The little HTTP of probes and hooks, against real servers on the loopback address."""

import asyncio
import os
import socket

import pytest

from localkube.kubelet.processes import podconnections
from localkube.kubelet.processes.model import ModelRunner
from localkube.kubelet.processes.podconnections import Get


class HostRunner(ModelRunner):
    """Connects on the host's network."""

    async def open_socket(self, sandbox_id: str | None) -> socket.socket:
        sock = socket.socket()
        sock.setblocking(False)
        return sock


async def exchange(answer: bytes, *, hang: bool = False, **fields: str) -> tuple[bytes, tuple[int, bytes]]:
    """Ask a server that gives this answer; return what it was asked, and what was understood."""
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


def test_status_and_body_are_understood() -> None:
    _, found = asyncio.run(exchange(b"HTTP/1.1 204 No Content\r\n\r\nbody"))
    assert found == (204, b"body")


def test_an_answer_is_whole_when_its_length_came_even_if_the_server_keeps_the_connection() -> None:
    _, found = asyncio.run(exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", hang=True))
    assert found == (200, b"body")


def test_headers_of_the_probe_replace_those_sent_otherwise() -> None:
    asked, _ = asyncio.run(exchange(b"HTTP/1.0 200 OK\r\n\r\n", host="example.com", Accept="x/y"))
    lines = asked.decode().split("\r\n")
    assert lines[0] == "GET / HTTP/1.1"
    assert {"Host: example.com", "Accept: x/y", "Connection: close"} < set(lines)
    assert sum(line.startswith("Host:") for line in lines) == 1


@pytest.mark.parametrize("answer", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_something_else_than_http_is_a_connection_error(answer: bytes) -> None:
    with pytest.raises(ConnectionError, match="malformed HTTP answer"):
        asyncio.run(exchange(answer))


async def test_a_refused_connection_leaves_no_socket_behind() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            await podconnections.connect(HostRunner(), None, unused.getsockname())


async def test_a_port_nobody_listens_on_is_told_in_words() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError) as caught:
            await podconnections.connect(HostRunner(), None, bound.getsockname())
    assert caught.value.strerror == "Connection refused"


def test_the_ports_on_which_a_process_listens_are_known() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname()[1] in podconnections.listening(os.getpid())
    assert podconnections.listening(0) == []
