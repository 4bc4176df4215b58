"""Multiplexes byte streams over a WebSocket. The first byte of a message is its stream number.

The protocols are `v5.channel.k8s.io` for commands, in which streams can be closed separately, and `v4.channel.k8s.io`
for ports.
"""

from collections.abc import Iterable
from typing import Final

import aiohttp
import msgspec

from kuberuntime.client.requests import Query
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
STATUS: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255

EXEC_PROTOCOL: Final = "v5.channel.k8s.io"
PORTS_PROTOCOL: Final = "v4.channel.k8s.io"


def exec_address(pod: JSONObject, container: str, command: Iterable[str], **streams: bool) -> tuple[str, Query]:
    """Return the path and the query of a command in a container. `streams` are its streams, such as `stdin` and `tty`."""
    query = [("container", container), *((name, "true") for name, is_open in streams.items() if is_open)]
    query += [("command", word) for word in command]
    return PODS.path(meta.namespace(pod), meta.name(pod), "exec"), tuple(query)


class Channels:
    """The streams of one open WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, channel: int, data: bytes) -> None:
        """Send data on a stream. If the connection is closed, discard the data."""
        if not self._socket.closed:
            await self._socket.send_bytes(bytes([channel]) + data)

    async def close_stream(self, channel: int) -> None:
        """Notify the peer that this stream is complete (protocol v5)."""
        await self.send(CLOSE, bytes([channel]))

    async def receive(self) -> tuple[int, bytes] | None:
        """Return the stream and the data of the next message, or None after the connection is closed.

        Messages without data are skipped, because a kubelet sends one to report that the stream is open.
        """
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY and len(message.data) > 1:
                return message.data[0], message.data[1:]
            if message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED}:
                return None
            if message.type is aiohttp.WSMsgType.ERROR:
                raise ConnectionFailedError(f"connection lost: {self._socket.exception()}")


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: tuple[_Cause, ...] | None = None


class _Status(msgspec.Struct):
    status: str = ""
    message: str = ""
    details: _Details | None = None


def exit_code(status: bytes) -> int:
    """Return the exit code in the Status of a command.

    >>> exit_code(b'{"status":"Success"}')
    0
    """
    try:
        response = msgspec.json.decode(status, type=_Status)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ConnectionFailedError(f"cannot read the status of the command: {error}") from error
    if response.status == "Success":
        return 0
    causes = (response.details or _Details()).causes or ()
    number = decimals.natural(next((cause.message for cause in causes if cause.reason == "ExitCode"), ""))
    if number is not None:
        return number
    raise ConnectionFailedError(response.message or "the command finished without an exit code")
