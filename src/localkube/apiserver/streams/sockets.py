"""WebSockets of clients: the upgrade, with a subprotocol of both sides, and sending to clients that may be gone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

import aiohttp
from aiohttp import web

from localkube.apiserver.model import refusal
from localkube.apiserver.streams import channels

PIECE: Final = 65536
"""Bytes read at once."""


def is_upgrade(request: web.BaseRequest) -> bool:
    """Return whether the request asks for an upgrade to a WebSocket."""
    return request.headers.get("upgrade", "").lower() == "websocket"


def negotiate(request: web.BaseRequest, served: Sequence[str]) -> str:
    """Return the subprotocol that the client likes best of those that are served; refuse it where there is none."""
    offered = [name.strip() for name in request.headers.get("sec-websocket-protocol", "").split(",")]
    chosen = next((name for name in offered if name in served), "")
    if not chosen:
        raise refusal.bad_request(f"unable to upgrade: none of the subprotocols {', '.join(served)} is offered")
    return chosen


async def upgrade(request: web.BaseRequest, protocol: str) -> web.WebSocketResponse:
    """Speak over a WebSocket from now on."""
    socket = web.WebSocketResponse(protocols=(protocol,))
    await socket.prepare(request)
    return socket


async def receive(socket: web.WebSocketResponse) -> AsyncIterator[bytes]:
    """Yield what the client sends, until it leaves."""
    async for message in socket:
        if message.type is aiohttp.WSMsgType.BINARY and message.data:
            yield message.data


async def send(socket: web.WebSocketResponse, data: bytes) -> None:
    """Send a message, if the client is still there."""
    if not socket.closed:
        try:
            await socket.send_bytes(data)
        except ConnectionResetError:
            return  # the client left; its reader ends the session


async def copy(socket: web.WebSocketResponse, channel: int, stream: asyncio.StreamReader) -> None:
    """Send what a stream yields on a channel, to its end."""
    try:
        while data := await stream.read(PIECE):
            await send(socket, channels.frame(channel, data))
    except ConnectionError:
        return  # the other side is gone, which is its end
