"""Builds the frames of `/exec` and `/portforward` over WebSockets, which consist of a channel byte and data.

The subprotocols are `v4.channel.k8s.io` and `v5.channel.k8s.io`. The latter adds a frame that closes one direction of a
channel.
"""

import struct
from typing import Annotated, Final, TypeAlias

import msgspec

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255

V4: Final = "v4.channel.k8s.io"
V5: Final = "v5.channel.k8s.io"


Cells: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**16 - 1)]


class Size(msgspec.Struct, frozen=True):
    """The size of a terminal, as the client sends it."""

    columns: Cells = msgspec.field(name="Width", default=0)
    rows: Cells = msgspec.field(name="Height", default=0)


def read_size(data: bytes) -> Size | None:
    """Return the size that a client sent, or None if it is invalid, so that the frame is ignored.

    >>> read_size(b'{"Width":80,"Height":24}'), read_size(b'{"Width":-1}')
    (Size(columns=80, rows=24), None)
    """
    try:
        return msgspec.json.decode(data, type=Size)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def frame(channel: int, data: bytes) -> bytes:
    r"""Build a frame.

    >>> frame(STDOUT, b"hello")
    b'\x01hello'
    """
    return bytes((channel,)) + data


def port_frame(channel: int, port: int) -> bytes:
    r"""Build the first frame of a port's channel: the port, little-endian.

    >>> port_frame(0, 8080)
    b'\x00\x90\x1f'
    """
    return frame(channel, struct.pack("<H", port))


def exit_status(code: int) -> bytes:
    """Build the Status with the exit code of a command."""
    if code == 0:
        return msgspec.json.encode({"metadata": {}, "status": "Success"})
    return msgspec.json.encode(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    )


def failure_status(message: str) -> bytes:
    """Build the Status with the reason why a command did not start."""
    status = {"metadata": {}, "status": "Failure", "message": message, "reason": "InternalError", "code": 500}
    return msgspec.json.encode(status)
