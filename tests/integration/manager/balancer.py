"""A TCP balancer on loopback: plays the service in front of the managers' webhooks."""

import asyncio
from types import TracebackType
from typing import Self


class Balancer:
    """Connects each client to one of `backends` (ports), in turn, passing over those that do not listen."""

    def __init__(self) -> None:
        self.backends: list[int] = []
        self.port = 0
        self._next = 0
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = await self._connect()
        if backend is None:
            writer.close()
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pump(reader, backend[1]))
                group.create_task(_pump(backend[0], writer))
        finally:
            backend[1].close()
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self.backends:
            self._next += 1
            try:
                return await asyncio.open_connection("127.0.0.1", self.backends[self._next % len(self.backends)])
            except OSError:
                continue
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        return  # one side went away: the other sees its connection end
