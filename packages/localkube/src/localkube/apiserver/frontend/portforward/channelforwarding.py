"""Forwards pod ports over channels for the client in `kuberuntime`, with one connection to each requested port.

Channel 2i carries the data of port i, and channel 2i + 1 its error.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from aiohttp import web

from localkube.apiserver.frontend.portforward.portconnection import Dial, LinkError, connect
from localkube.apiserver.streams import channels
from localkube.apiserver.streams.sockets import copy, receive, send

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter] | None


async def serve(socket: web.WebSocketResponse, dial: Dial, ports: Sequence[int]) -> None:
    """Connect the client to pod ports until the client disconnects or the pod has closed all connections."""
    for index, port in enumerate(ports):
        await socket.send_bytes(channels.port_frame(2 * index, port))
        await socket.send_bytes(channels.port_frame(2 * index + 1, port))
    await _forward(socket, [await _connect(dial, port, socket, 2 * index) for index, port in enumerate(ports)])


async def _connect(dial: Dial, port: int, socket: web.WebSocketResponse, channel: int) -> Connection:
    try:
        return await connect(dial, port)
    except LinkError as error:
        await send(socket, channels.frame(channel + 1, str(error).encode()))
        return None


async def _forward(socket: web.WebSocketResponse, connections: Sequence[Connection]) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            copies = [
                tasks.create_task(copy(socket, 2 * index, connection[0]))
                for index, connection in enumerate(connections)
                if connection is not None
            ]
            ending = tasks.create_task(_close_after(copies, socket))
            async for message in receive(socket):
                await _deliver(connections, message[0], message[1:])
            for task in (ending, *copies):
                task.cancel()
    finally:
        for connection in filter(None, connections):
            connection[1].close()


async def _close_after(copies: Sequence[asyncio.Task[None]], socket: web.WebSocketResponse) -> None:
    """Close the WebSocket when the pod has closed all connections, because the protocol has no other signal."""
    await asyncio.gather(*copies)
    await socket.close()


async def _deliver(connections: Sequence[Connection], channel: int, data: bytes) -> None:
    connection = connections[channel // 2] if channel // 2 < len(connections) else None
    if connection is None or channel % 2:
        return
    with suppress(ConnectionError):  # the pod closed the connection, and the task that reads it notifies the client
        connection[1].write(data)
        await connection[1].drain()
