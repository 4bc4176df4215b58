"""Provides a TCP load balancer on the loopback address, which replaces the Service of the manager webhooks."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import Self


class Balancer:
    """Connects clients to the ports in `backends` in turn, and skips ports without a listener."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self.backends: list[int] = []
        self.port = port
        self.accepted = 0
        """The number of connections."""
        self._host = host
        self._next = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, self._host, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with _closing(writer):
            backend = await self._connect()
            if backend is None:
                return
            async with _closing(backend[1]), asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, backend[1]))
                group.create_task(_pump(backend[0], writer))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self.backends:
            self._next += 1
            try:
                return await asyncio.open_connection("127.0.0.1", self.backends[self._next % len(self.backends)])
            except OSError:
                continue
        return None


@contextmanager
def balanced(host: str, port: int, backends: list[int]) -> Iterator[None]:
    """Run a load balancer at an address in a separate thread until the context exits."""
    loop, ended = asyncio.new_event_loop(), asyncio.Event()
    listens = threading.Event()

    async def balance() -> None:
        async with Balancer(host, port) as balancer:
            balancer.backends = backends
            listens.set()
            await ended.wait()

    def run() -> None:
        try:
            loop.run_until_complete(balance())
        finally:
            listens.set()

    thread = threading.Thread(target=run)
    thread.start()
    listens.wait()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        return  # one side closed its connection, and this closes the other connection
