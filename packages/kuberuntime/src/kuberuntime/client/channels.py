"""Several byte streams over one WebSocket, for `/exec` and `/portforward`: the first byte of a message is its stream.

Protocols: `v5.channel.k8s.io` (commands; streams can be closed one by one), `v4.channel.k8s.io` (ports).
"""

from typing import Final

import aiohttp
import msgspec

from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects import decimals
from kuberuntime.objects.meta import JSONObject

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
STATUS: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255

EXEC_PROTOCOL: Final = "v5.channel.k8s.io"
PORTS_PROTOCOL: Final = "v4.channel.k8s.io"


class Channels:
    """The streams of one open WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, channel: int, data: bytes) -> None:
        """Send data on a stream; if the connection is closed, the data is dropped and `receive` returns the end."""
        if not self._socket.closed:
            await self._socket.send_bytes(bytes([channel]) + data)

    async def close_stream(self, channel: int) -> None:
        """Notify the peer that no more data follows on this stream (protocol v5)."""
        await self.send(CLOSE, bytes([channel]))

    async def receive(self) -> tuple[int, bytes] | None:
        """Return the stream and the data of the next message, None at the end of the connection."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY and message.data:
                return message.data[0], message.data[1:]
            if message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED}:
                return None
            if message.type is aiohttp.WSMsgType.ERROR:
                raise ConnectionFailedError(f"the connection broke: {self._socket.exception()}")


def exit_code(status: bytes) -> int:
    """Return the exit code from the Status that ends a command.

    >>> exit_code(b'{"status":"Success"}')
    0
    """
    answer = msgspec.json.decode(status, type=JSONObject)
    if answer.get("status") == "Success":
        return 0
    causes = (answer.get("details") or {}).get("causes") or []
    code = next((cause["message"] for cause in causes if cause.get("reason") == "ExitCode"), "")
    number = decimals.natural(code)
    if number is not None:
        return number
    raise ConnectionFailedError(answer.get("message") or "the command ended without an exit code")
