"""Tests that a closed HTTP transport closes all connections, even if the server never closes its side."""

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import trustme

from kuberuntime.access.access import TLS, Access
from kuberuntime.access.credentials import SecretEntry, StoredCredentials
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.transport import Request

NOTHING = SecretEntry("")
NOBODY = StoredCredentials(token=NOTHING, certificate=NOTHING, key=NOTHING)
BEGINNING = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"


@contextmanager
def server_without_farewell(authority: trustme.CA) -> Iterator[Access]:
    """Respond to one TLS request with the start of a stream. Then neither read from the connection nor close it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection = context.wrap_socket(listener.accept()[0], server_side=True)
        connection.recv(65536)
        connection.sendall(BEGINNING)
        over.wait()
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        trusted = TLS(authority.cert_pem.bytes())
        yield Access(f"https://127.0.0.1:{listener.getsockname()[1]}", NOBODY, trusted)
        over.set()
        thread.join()


async def leave_a_stream(access: Access) -> None:
    transport = HTTPTransport(access, user_agent="test")
    async with transport.stream(Request("GET", "/watch")) as answer:
        assert await anext(answer.chunks) == b"{"
    await transport.close()


def test_abandoned_stream_is_closed_before_the_event_loop_ends() -> None:
    with server_without_farewell(trustme.CA()) as access, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(leave_a_stream(access))
        gc.collect()
    assert [str(one.message) for one in told] == []
