"""Implements the connection between the cluster process, the launcher and the launcher's children.

A frame is a length (4 bytes, big endian) and a JSON object; file descriptors are sent with it (SCM_RIGHTS), and the
object's `fds` is their number. Stream sockets keep descriptors in order with the bytes, so their number is enough.
"""

import errno
import json
import os
import socket
import struct
from typing import Any, NamedTuple

Message = dict[str, Any]

LONGEST = 16 << 20
"""The maximum size of one frame in bytes.

The kernel accepts 2 MiB of arguments and environment, so a frame near this size is an error.
"""

_LENGTH = struct.Struct("!I")
_CHUNK = 1 << 16
_MOST_FDS = 64
_INT = struct.calcsize("i")
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # socket.recv_fds accepts flags, but ignores them


class ConnectionClosedError(Exception):
    """The other end has closed the connection."""


class ReceivedMessage(NamedTuple):
    """One message and its descriptors, which the receiver owns.

    With `has_lost_descriptors`, descriptors were sent but not received: this process has too many open files.
    """

    message: Message
    fds: list[int]
    has_lost_descriptors: bool = False


def require_all(received: ReceivedMessage) -> None:
    """Raise `OSError` if descriptors were lost."""
    if received.has_lost_descriptors:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE).lower())


def encode(message: Message, fds: int = 0) -> bytes:
    """Return the frame of a message that is sent with this number of descriptors."""
    body = json.dumps(message | {"fds": fds} if fds else message).encode()
    if len(body) > LONGEST:
        raise ValueError(f"a message of {len(body)} bytes exceeds the limit of {LONGEST} bytes")
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Converts bytes, which can arrive in parts of any size, to messages."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Add bytes, and return the completed messages."""
        self._rest += data
        messages = []
        while len(self._rest) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._rest)
            if length > LONGEST:
                raise ValueError(f"a frame of {length} bytes exceeds the limit of {LONGEST} bytes")
            end = _LENGTH.size + length
            if len(self._rest) < end:
                break
            messages.append(json.loads(self._rest[_LENGTH.size : end]))
            del self._rest[:end]
        return messages


class LauncherConnection:
    """One end of the connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._decoder = Decoder()
        self._fds: list[int] = []
        self._is_short = False

    def fileno(self) -> int:
        """Return the socket's descriptor, for polling."""
        return self.sock.fileno()

    def send(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Send a complete message. Wait if the other end is slow."""
        frame = encode(message, len(fds))
        try:
            sent = socket.send_fds(self.sock, [frame], list(fds)) if fds else 0
            self.sock.sendall(frame[sent:])
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosedError from error

    def receive(self) -> list[ReceivedMessage]:
        """Return the complete messages that have arrived. If the socket blocks, wait for data."""
        try:
            data, ancillary, flags, _ = self.sock.recvmsg(_CHUNK, socket.CMSG_SPACE(_MOST_FDS * _INT), _CLOSE_ON_EXEC)
        except ConnectionResetError as error:
            raise ConnectionClosedError from error
        if flags & socket.MSG_CTRUNC:  # the kernel could not pass all of them to this process, so use none
            self._is_short = True
            close_all(_descriptors(ancillary))
        else:
            self._fds += _descriptors(ancillary)
        if not data:
            raise ConnectionClosedError
        return [self._build_message(message, message.pop("fds", 0)) for message in self._decoder.feed(data)]

    def close(self) -> None:
        """Close this end, and descriptors that the caller has not received."""
        close_all(self._fds)
        self._fds = []
        self.sock.close()

    def _build_message(self, message: Message, count: int) -> ReceivedMessage:
        if count and self._is_short:
            self._is_short = False
            return ReceivedMessage(message, [], has_lost_descriptors=True)
        fds, self._fds = self._fds[:count], self._fds[count:]
        return ReceivedMessage(message, fds)


def close_all(fds: list[int]) -> None:
    """Close descriptors."""
    for fd in fds:
        os.close(fd)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    fds: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += struct.unpack(f"{len(data) // _INT}i", data[: len(data) // _INT * _INT])
    for fd in fds:
        os.set_inheritable(fd, False)  # for systems that do not support the flag
    return fds
