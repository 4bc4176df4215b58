"""Sends frames to the client of a tunnel, in the order in which they were created."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from localkube.apiserver.front.spdy.connection import Connection

Send: TypeAlias = Callable[[bytes], Awaitable[None]]


class Outlet:
    """Sends the pending bytes of a SPDY connection. `send` returns when the client has read enough."""

    def __init__(self, connection: Connection, send: Send) -> None:
        self._connection = connection
        self._send = send
        self._turn = asyncio.Lock()

    async def send(self, stream: int, data: bytes) -> None:
        """Send bytes on a stream."""
        self._connection.send(stream, data)
        await self.flush()

    async def finish(self, stream: int) -> None:
        """Send nothing more on a stream."""
        self._connection.finish(stream)
        await self.flush()

    async def flush(self) -> None:
        """Send all pending bytes, also those that are added meanwhile."""
        async with self._turn:
            while data := self._connection.take():
                await self._send(data)
