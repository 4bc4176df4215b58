"""Serves a pod's output, commands and ports over WebSockets: `/attach`, `/exec` and `/portforward`.

In: an upgrade request. The pod, container and ports are checked before the upgrade, so that these errors are a Status.
All other errors, including errors of the node, are sent on the error channels. If the upgrade fails, kubectl assumes
that the server does not support WebSockets, and tries SPDY, which gets an error with an alternative (`routes.py`).
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import aiohttp
from aiohttp import web

from localkube.apiserver.model import apierrors
from localkube.apiserver.requests.call import Call
from localkube.apiserver.streams import channels, sockets
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading import podtarget
from localkube.podaccess import ExecSession, NodeError, Stream

if TYPE_CHECKING:
    from localkube.apiserver.frontend.portforward.portconnection import Dial

LINGER: Final = 1.0
"""The time in seconds to read after a command has exited, if a child process still has its output open."""

NO_INPUT: Final = (
    "containers do not have standard input on a local cluster. Attach without --stdin, or use kubectl exec"
)

PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)

TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
"""The protocol of kubectl, implemented by `portforward/tunnel.py`."""

REASON_LIMIT: Final = 123
"""The maximum size in bytes of the reason in a WebSocket close frame."""


async def _attach(backend: Backend, call: Call, request: web.BaseRequest) -> web.StreamResponse:
    pod = podtarget.running_pod(backend, call)
    container = podtarget.requested_container(pod, call.query.get("container", ""))
    node, protocol = backend.node.current, sockets.negotiate(request, (channels.V5, channels.V4))
    socket = await sockets.upgrade(request, protocol)
    if call.flag("stdin"):
        await _close(socket, channels.failure_status(NO_INPUT))
        return socket
    await _send_empty_frame(socket, call)
    async with asyncio.TaskGroup() as tasks:
        showing = tasks.create_task(_send_output(socket, node.attach(pod, container), merged=call.flag("tty")))
        async for _ in sockets.receive(socket):
            continue  # a terminal size, without a terminal
        showing.cancel()
    return socket


async def _send_output(
    socket: web.WebSocketResponse, output: AsyncIterator[tuple[Stream, bytes]], *, merged: bool
) -> None:
    status = channels.exit_status(0)
    async with aclosing(cast("AsyncGenerator[tuple[Stream, bytes], None]", output)) as pieces:
        try:
            async for stream, data in pieces:
                channel = channels.STDERR if stream == "stderr" and not merged else channels.STDOUT
                await sockets.send(socket, channels.frame(channel, data))
        except NodeError as error:
            status = channels.failure_status(str(error))
    await _close(socket, status)


async def _exec(backend: Backend, call: Call, request: web.BaseRequest) -> web.StreamResponse:
    pod = podtarget.running_pod(backend, call)
    container = podtarget.requested_container(pod, call.query.get("container", ""))
    command = call.values("command")
    if not command:
        raise apierrors.bad_request("you must specify at least 1 command for the container")
    node, protocol = backend.node.current, sockets.negotiate(request, (channels.V5, channels.V4))
    socket = await sockets.upgrade(request, protocol)
    await _send_empty_frame(socket, call)
    try:
        session = await node.exec(pod, container, command, stdin=call.flag("stdin"), tty=call.flag("tty"))
    except NodeError as error:
        await _close(socket, channels.failure_status(str(error)))
        return socket
    try:
        await _run_exec(socket, session)
    finally:
        await session.kill()
    return socket


async def _run_exec(socket: web.WebSocketResponse, session: ExecSession) -> None:
    """Forward bytes in both directions until the command exits. Kill the command if the client disconnects."""
    async with asyncio.TaskGroup() as tasks:
        streams = [(channels.STDOUT, session.stdout), (channels.STDERR, session.stderr)]
        outputs = [tasks.create_task(sockets.copy(socket, channel, stream)) for channel, stream in streams if stream]
        inputs = tasks.create_task(_send_input(socket, session))
        code = await session.wait()
        await asyncio.wait(outputs, timeout=LINGER)
        await _close(socket, channels.exit_status(code))
        for task in (inputs, *outputs):
            task.cancel()


async def _send_input(socket: web.WebSocketResponse, session: ExecSession) -> None:
    async for message in sockets.receive(socket):
        channel, data = message[0], message[1:]
        if channel == channels.STDIN:
            await session.write(data)
        elif channel == channels.CLOSE and data == bytes((channels.STDIN,)):
            await session.close_stdin()
        elif channel == channels.RESIZE:
            size = channels.read_size(data)
            if size is not None:
                session.resize(size.columns, size.rows)
    await session.kill()


async def _send_empty_frame(socket: web.WebSocketResponse, call: Call) -> None:
    """Notify the client that the stream is open with an empty frame on the lowest channel, like a kubelet."""
    channel = channels.STDOUT if call.flag("stdout") else channels.STDERR if call.flag("stderr") else channels.ERROR
    await sockets.send(socket, channels.frame(channel, b""))


async def _close(socket: web.WebSocketResponse, status: bytes) -> None:
    await sockets.send(socket, channels.frame(channels.ERROR, status))
    await socket.close()


async def _forward_ports(backend: Backend, call: Call, request: web.BaseRequest) -> web.StreamResponse:
    from localkube.apiserver.frontend.portforward import (
        channelforwarding,  # local import, because most clusters never forward a port
    )

    pod, node = podtarget.running_pod(backend, call), backend.node.current
    protocol = sockets.negotiate(request, (TUNNEL, channels.V4))
    dial = partial(node.dial, pod)
    if protocol == TUNNEL:
        socket = await sockets.upgrade(request, protocol)
        await _tunnel(socket, dial)
        return socket
    ports = [_port(text) for value in call.values("ports") for text in value.split(",")]
    if not ports:
        raise apierrors.bad_request('query parameter "ports" is required')
    socket = await sockets.upgrade(request, protocol)
    await channelforwarding.serve(socket, dial, ports)
    return socket


async def _tunnel(socket: web.WebSocketResponse, dial: "Dial") -> None:
    """Forward ports until the client disconnects. Report protocol violations to the client."""
    from localkube.apiserver.frontend.portforward.tunnel import Tunnel

    failure = await Tunnel(dial, partial(sockets.send, socket)).run(sockets.receive(socket))
    code = aiohttp.WSCloseCode.PROTOCOL_ERROR if failure else aiohttp.WSCloseCode.OK
    await socket.close(code=code, message=failure.encode()[:REASON_LIMIT])


def _port(text: str) -> int:
    if not PORT.fullmatch(text) or not 0 < int(text) < 65536:
        raise apierrors.bad_request(f'ports: Invalid value: "{text}": must be between 1 and 65535, inclusive')
    return int(text)


Serve: TypeAlias = Callable[[Backend, Call, web.BaseRequest], Awaitable[web.StreamResponse]]

SERVED: Final[Mapping[str, Serve]] = {"attach": _attach, "exec": _exec, "portforward": _forward_ports}
"""The subresources that use WebSockets."""
