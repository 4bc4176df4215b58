"""The ports of test processes."""

import asyncio
import socket

import pytest
from tests.controlplane.process import LOOPBACK, free_ports


def test_free_port_remains_reserved_and_permits_the_server() -> None:
    (port,) = free_ports(1)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((LOOPBACK, port))

    async def serve() -> None:
        (await asyncio.start_server(lambda _reader, _writer: None, LOOPBACK, port)).close()

    asyncio.run(serve())
