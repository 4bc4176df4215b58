"""`/exec` and `/portforward`: a pod's commands and ports over WebSockets (not SPDY).

In: a request to upgrade. The pod, the container and the node's consent are checked before the upgrade, so that a
refusal is a Status; afterwards faults travel on the error channels.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import channels, containers, refusal
from leaderworkerset.embedded.apiserver.backend import Backend
from leaderworkerset.embedded.apiserver.call import Call
from leaderworkerset.embedded.apiserver.node import ExecSession, Node, NodeError

PIECE: Final = 65536
"""Bytes read at once."""

LINGER: Final = 1.0
"""Seconds to read on when a command has ended and something it left behind holds its output open."""


async def serve(backend: Backend, call: Call, request: web.BaseRequest) -> web.StreamResponse:
    """Serve `/exec` or `/portforward`."""
    if call.subresource == "exec":
        return await _exec(backend, call, request)
    return await _forward_ports(backend, call, request)


async def _exec(backend: Backend, call: Call, request: web.BaseRequest) -> web.StreamResponse:
    pod = containers.running_pod(backend, call)
    container = containers.container_of(pod, call.query.get("container", ""))
    command = call.values("command")
    if not command:
        raise refusal.bad_request("you must specify at least 1 command for the container")
    socket = _socket(request, (channels.V5, channels.V4))
    try:
        node = backend.node.current
        session = await node.exec(pod, container, command, stdin=call.flag("stdin"), tty=call.flag("tty"))
    except NodeError as error:
        raise refusal.bad_request(str(error)) from error
    try:
        await socket.prepare(request)
        await _run(socket, session)
    finally:
        await session.kill()
    return socket


async def _run(socket: web.WebSocketResponse, session: ExecSession) -> None:
    """Carry bytes both ways until the command ends; a client that leaves ends the command."""
    async with asyncio.TaskGroup() as tasks:
        streams = [(channels.STDOUT, session.stdout), (channels.STDERR, session.stderr)]
        outputs = [tasks.create_task(_copy(socket, channel, stream)) for channel, stream in streams if stream]
        inputs = tasks.create_task(_feed(socket, session))
        code = await session.wait()
        await asyncio.wait(outputs, timeout=LINGER)
        await _send(socket, channels.frame(channels.ERROR, channels.exit_status(code)))
        await socket.close()
        for task in (inputs, *outputs):
            task.cancel()


async def _feed(socket: web.WebSocketResponse, session: ExecSession) -> None:
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == channels.STDIN:
            await session.write(data)
        elif channel == channels.CLOSE and data == bytes((channels.STDIN,)):
            await session.close_stdin()
        elif channel == channels.RESIZE:
            size = msgspec.json.decode(data, type=channels.Size)
            session.resize(size.columns, size.rows)
    await session.kill()


async def _forward_ports(backend: Backend, call: Call, request: web.BaseRequest) -> web.StreamResponse:
    """Connect the client to ports of a pod: channel 2i carries the data of port i, 2i + 1 its error."""
    pod = containers.running_pod(backend, call)
    ports = [_port(text) for value in call.values("ports") for text in value.split(",")]
    if not ports:
        raise refusal.bad_request('query parameter "ports" is required')
    socket, node = _socket(request, (channels.V4,)), backend.node.current
    await socket.prepare(request)
    for index, port in enumerate(ports):
        await socket.send_bytes(channels.port_frame(2 * index, port))
        await socket.send_bytes(channels.port_frame(2 * index + 1, port))
    writers = [await _connect(node, pod, port, socket, 2 * index) for index, port in enumerate(ports)]
    await _forward(socket, writers)
    return socket


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter] | None


async def _connect(node: Node, pod: JSONObject, port: int, socket: web.WebSocketResponse, channel: int) -> Connection:
    """Connect to a port; tell the client on the error channel where that fails."""
    try:
        return await node.dial(pod, port)
    except (NodeError, OSError) as error:
        await _send(socket, channels.frame(channel + 1, f"error forwarding port {port}: {error}".encode()))
        return None


async def _forward(socket: web.WebSocketResponse, connections: Sequence[Connection]) -> None:
    try:
        async with asyncio.TaskGroup() as tasks:
            copies = [
                tasks.create_task(_copy(socket, 2 * index, connection[0]))
                for index, connection in enumerate(connections)
                if connection is not None
            ]
            ending = tasks.create_task(_close_after(copies, socket))
            async for message in socket:
                if message.type is aiohttp.WSMsgType.BINARY and message.data:
                    await _deliver(connections, message.data[0], message.data[1:])
            for task in (ending, *copies):
                task.cancel()
    finally:
        for connection in filter(None, connections):
            connection[1].close()


async def _close_after(copies: Sequence[asyncio.Task[None]], socket: web.WebSocketResponse) -> None:
    """Leave the client when the pod has closed all connections: the protocol has no other word for it."""
    await asyncio.gather(*copies)
    await socket.close()


async def _deliver(connections: Sequence[Connection], channel: int, data: bytes) -> None:
    connection = connections[channel // 2] if channel // 2 < len(connections) else None
    if connection is None or channel % 2:
        return
    try:
        connection[1].write(data)
        await connection[1].drain()
    except ConnectionError:
        return  # the pod closed the connection; its reader tells the client


async def _copy(socket: web.WebSocketResponse, channel: int, stream: asyncio.StreamReader) -> None:
    """Send what a stream yields, to its end."""
    try:
        while data := await stream.read(PIECE):
            await _send(socket, channels.frame(channel, data))
    except ConnectionError:
        return  # the other side is gone, which is its end


async def _send(socket: web.WebSocketResponse, data: bytes) -> None:
    """Send a frame, if the client is still there."""
    if not socket.closed:
        try:
            await socket.send_bytes(data)
        except ConnectionResetError:
            return  # the client left; its reader ends the session


def is_upgrade(request: web.BaseRequest) -> bool:
    """Tell whether the request wants to speak over a WebSocket."""
    return request.headers.get("upgrade", "").lower() == "websocket"


def _socket(request: web.BaseRequest, served: Sequence[str]) -> web.WebSocketResponse:
    """Prepare the upgrade; refuse a request that asks for another one."""
    offered = {name.strip() for name in request.headers.get("sec-websocket-protocol", "").split(",")}
    if not offered.intersection(served):
        raise refusal.bad_request(f"unable to upgrade: none of the subprotocols {', '.join(served)} is offered")
    return web.WebSocketResponse(protocols=tuple(served))


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise refusal.bad_request(f'ports: Invalid value: "{text}": must be between 1 and 65535, inclusive')
    return int(text)
