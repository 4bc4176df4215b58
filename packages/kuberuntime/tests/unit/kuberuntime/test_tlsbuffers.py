"""Tests TLS connections with small read buffers."""

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol

import pytest
from testkit import certificates

from kuberuntime import tlsbuffers
from kuberuntime.serving import serving

LARGE = bytes(range(256)) * 8192
"""2 MiB of data, which needs many TLS records and many buffers."""


def test_tls_connection_with_small_buffers_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """This fails if a new Python version determines the size differently. `reduce_buffer_size` then needs another method."""
    monkeypatch.setattr(SSLProtocol, "max_size", SSLProtocol.max_size)
    context = serving.server_context(certificates.issue().chain)
    trusting = ssl.create_default_context(cadata=certificates.TRUSTED.decode())
    sizes: list[int] = []

    def note(writer: asyncio.StreamWriter) -> None:
        protocol: SSLProtocol = writer.transport._ssl_protocol  # type: ignore[attr-defined]
        sizes.append(len(protocol._ssl_buffer))  # type: ignore[attr-defined]

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(len(LARGE)))
        await writer.drain()
        note(writer)
        writer.close()

    async def scenario() -> bytes:
        server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            writer.write(LARGE)
            answer = await reader.readexactly(len(LARGE))
            note(writer)
            writer.close()
            return answer

    tlsbuffers.reduce_buffer_size()
    assert asyncio.run(scenario()) == LARGE
    assert sizes == [tlsbuffers.SIZE, tlsbuffers.SIZE]
