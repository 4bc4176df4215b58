"""One forwarded connection: the client's pair of streams on one side, a connection to a pod's port on the other.

Each direction ends separately: the end of the client's data is passed on while the pod may still send, and vice versa.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from kuberuntime import timeouts
from localkube.apiserver.front.portforward.inbox import Inbox
from localkube.apiserver.front.portforward.outlet import Outlet
from localkube.apiserver.front.portforward.pairing import Pair
from localkube.apiserver.streams.sockets import PIECE
from localkube.podaccess import NodeError

PATIENCE: Final = 30
"""Seconds that a stream waits for the other one of its pair, as in Kubernetes."""

Dial: TypeAlias = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to a port of the pod."""


class LinkError(Exception):
    """The connection cannot be made; the text is for the client."""


class PortLink:
    """One forwarded connection. `complete` is set when its pair is complete; the client's data is put into `inbox`."""

    def __init__(self, pair: Pair, outlet: Outlet) -> None:
        self.pair = pair
        self.inbox = Inbox()
        self.complete = asyncio.Event()
        self._outlet = outlet

    async def run(self, dial: Dial) -> None:
        """Wait for the second stream, connect, and forward bytes until both directions have ended."""
        try:
            await self._await_partner()
            reader, writer = await connect(dial, self.pair.port)
        except LinkError as error:
            await self._outlet.send(self.pair.error, str(error).encode())
            return
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_deliver(self.inbox, writer))
                await self._answer(reader)
        except asyncio.CancelledError:
            writer.transport.abort()  # data that the pod has not read yet is dropped
            raise
        finally:
            writer.close()

    async def _await_partner(self) -> None:
        try:
            async with timeouts.within(PATIENCE):
                await self.complete.wait()
        except TimeoutError as error:
            text = f"request {self.pair.request}: no {self.pair.missing} stream came within {PATIENCE} s"
            raise LinkError(text) from error

    async def _answer(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(PIECE):
                await self._outlet.send(self.pair.data, data)
        except OSError:
            self.inbox.close()  # the pod broke the connection: both directions have ended
        else:
            await self._outlet.finish(self.pair.data)


async def connect(dial: Dial, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a port of the pod; raise `LinkError` with the reason if that fails."""
    try:
        return await dial(port)
    except (NodeError, OSError) as error:
        raise LinkError(f"error forwarding port {port}: {error}") from error


async def _deliver(inbox: Inbox, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await inbox.get():
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        inbox.close()  # the pod reads no more; what it has sent still goes to the client
