"""Upgrades connections to WebSockets with a common subprotocol, and sends data to clients that can disconnect."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

import aiohttp
from aiohttp import web

from localkube.apiserver.model import apierrors
from localkube.apiserver.streams import channels

ANY: Final = "*/*"

NOT_ACCEPTABLE: Final = "406: Not Acceptable\n\nAvailable representations: "
"""The response of a kubelet, which API servers forward as plain text."""

PIECE: Final = 65536
"""The maximum number of bytes per read."""


def is_upgrade(request: web.BaseRequest) -> bool:
    """Return whether the request is an upgrade to a WebSocket."""
    return request.headers.get("upgrade", "").lower() == "websocket"


def negotiate(request: web.BaseRequest, served: Sequence[str]) -> str:
    """Return the supported subprotocol that the client prefers. Raise an error if there is none.

    As in a kubelet, the Accept header must allow any media type, because streams do not have a media type.
    """
    accept = request.headers.get("accept") or ANY
    if ANY not in [clause.partition(";")[0].strip() for clause in accept.split(",")]:
        raise web.HTTPNotAcceptable(text=NOT_ACCEPTABLE)
    offered = [name.strip() for name in request.headers.get("sec-websocket-protocol", "").split(",")]
    subprotocol = next((name for name in offered if name in served), "")
    if not subprotocol:
        raise apierrors.bad_request(f"unable to upgrade: none of the subprotocols {', '.join(served)} is offered")
    return subprotocol


async def upgrade(request: web.BaseRequest, protocol: str) -> web.WebSocketResponse:
    """Upgrade the request to a WebSocket."""
    socket = web.WebSocketResponse(protocols=(protocol,))
    await socket.prepare(request)
    return socket


async def receive(socket: web.WebSocketResponse) -> AsyncIterator[bytes]:
    """Yield the messages of the client, until it disconnects."""
    async for message in socket:
        if message.type is aiohttp.WSMsgType.BINARY and message.data:
            yield message.data


async def send(socket: web.WebSocketResponse, data: bytes) -> None:
    """Send a message if the client is still connected."""
    if not socket.closed:
        try:
            await socket.send_bytes(data)
        except ConnectionResetError:
            return  # the client has disconnected, and the task that reads it stops the session


async def copy(socket: web.WebSocketResponse, channel: int, stream: asyncio.StreamReader) -> None:
    """Send the data of a stream on a channel until the stream is closed."""
    with suppress(ConnectionError):  # the peer has disconnected, which closes the stream
        while data := await stream.read(PIECE):
            await send(socket, channels.frame(channel, data))
