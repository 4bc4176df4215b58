"""Provides a TCP proxy whose connections can silently lose their server, as behind a load balancer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class StallingProxy:
    """Forwards connections to `target`, a port on this machine."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._stalled = asyncio.Event()
        self._pumps: set[asyncio.Task[None]] = set()
        self.port = 0

    def stall(self) -> None:
        """Stop forwarding on the open connections without closing them. New connections work."""
        self._stalled.set()
        self._stalled = asyncio.Event()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection in both directions."""
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
        for source, sink in ((reader, server_writer), (server_reader, writer)):
            pump = asyncio.create_task(_pump(source, sink, self._stalled))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def end(self) -> None:
        """Close all connections."""
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stalled: asyncio.Event) -> None:
    try:
        with suppress(OSError):
            while data := await reader.read(65536):
                if not stalled.is_set():
                    writer.write(data)
                    await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def stalling_proxy(target: int) -> AsyncIterator[StallingProxy]:
    """Run a proxy to a port for the duration of the `with` block."""
    proxy = StallingProxy(target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()
