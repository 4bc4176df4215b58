"""Converts bytes to frames and back.

```
control frame   1 version(15) | type(16) | flags(8) length(24) | payload
data frame      0 stream(31)             | flags(8) length(24) | payload
```
"""

import struct
from enum import IntEnum
from typing import Final

from localkube.apiserver.front.spdy.frames import (
    Data,
    Frame,
    GoAway,
    MoreHeaders,
    Ping,
    RstStream,
    SynReply,
    SynStream,
)
from localkube.apiserver.front.spdy.headers import HeaderReader, Headers, HeaderWriter, ProtocolError

VERSION: Final = 3
CONTROL: Final = 1 << 31
NUMBER: Final = CONTROL - 1
"""The bits of a stream's number."""

FIN: Final = 1
UNIDIRECTIONAL: Final = 2

WORD: Final = struct.Struct(">I")
PAIR: Final = struct.Struct(">II")
OPENING: Final = struct.Struct(">IIH")
"""The layout of SYN_STREAM: the stream, its associated stream and its priority; only the first is used."""

CONTROL_LIMIT: Final = 65536
"""Most bytes of a control frame. Those of kubectl have a hundred."""

DATA_LIMIT: Final = 4 * 2**20
"""Most bytes of a data frame, as many as one message of a WebSocket. Those of kubectl have 32 KiB."""


class Type(IntEnum):
    """The types of control frames that have an effect; others, like SETTINGS and WINDOW_UPDATE, are skipped."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6
    GOAWAY = 7
    HEADERS = 8


class FrameReader:
    """Splits the bytes of one direction into frames; they may arrive in parts of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._headers = HeaderReader()

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes and return the frames that are complete now, without those of other types."""
        self._buffer += data
        frames: list[Frame] = []
        while len(self._buffer) >= PAIR.size:
            word, rest = PAIR.unpack_from(self._buffer)
            end = PAIR.size + _length(word, rest)
            if len(self._buffer) < end:
                break
            payload = bytes(self._buffer[PAIR.size : end])
            del self._buffer[:end]
            frame = self._frame(word, rest >> 24, payload)
            if frame is not None:
                frames.append(frame)
        return frames

    def _frame(self, word: int, flags: int, payload: bytes) -> Frame | None:
        fin = bool(flags & FIN)
        if not word & CONTROL:
            return Data(_stream(word), payload, fin)
        version = word >> 16 & 0x7FFF
        if version != VERSION:
            raise ProtocolError(f"a frame is of SPDY/{version}: SPDY/{VERSION} is spoken here")
        match word & 0xFFFF:
            case Type.SYN_STREAM:
                stream, headers = self._headed(OPENING, payload)
                return SynStream(stream, headers, fin, bool(flags & UNIDIRECTIONAL))
            case Type.SYN_REPLY:
                return SynReply(*self._headed(WORD, payload), fin)
            case Type.HEADERS:
                return MoreHeaders(*self._headed(WORD, payload), fin)
            case kind:
                return _plain(kind, payload)

    def _headed(self, layout: struct.Struct, payload: bytes) -> tuple[int, Headers]:
        """Read the stream of a frame and the header block that follows the layout."""
        word = _fields(layout, payload[: layout.size])[0]
        return _stream(word), self._headers.read(payload[layout.size :])


class FrameWriter:
    """Encodes frames as the bytes of one direction."""

    def __init__(self) -> None:
        self._headers = HeaderWriter()

    def write(self, frame: Frame) -> bytes:
        """Return the bytes of a frame."""
        match frame:
            case Data(stream, data, fin):
                return _framed(stream, FIN * fin, data)
            case SynStream(stream, headers, fin, unidirectional):
                flags = FIN * fin | UNIDIRECTIONAL * unidirectional
                return _control(Type.SYN_STREAM, OPENING.pack(stream, 0, 0) + self._headers.write(headers), flags)
            case SynReply(stream, headers, fin):
                return _control(Type.SYN_REPLY, WORD.pack(stream) + self._headers.write(headers), FIN * fin)
            case MoreHeaders(stream, headers, fin):
                return _control(Type.HEADERS, WORD.pack(stream) + self._headers.write(headers), FIN * fin)
            case _:
                return _unheaded(frame)


def _unheaded(frame: RstStream | Ping | GoAway) -> bytes:
    match frame:
        case RstStream(stream, status):
            return _control(Type.RST_STREAM, PAIR.pack(stream, status))
        case Ping(number):
            return _control(Type.PING, WORD.pack(number))
        case GoAway(last_stream, status):
            return _control(Type.GOAWAY, PAIR.pack(last_stream, status))


def _plain(kind: int, payload: bytes) -> Frame | None:
    """Read a control frame without headers; None for a type that is not supported."""
    match kind:
        case Type.RST_STREAM:
            stream, status = _fields(PAIR, payload)
            return RstStream(_stream(stream), status)
        case Type.PING:
            return Ping(*_fields(WORD, payload))
        case Type.GOAWAY:
            last, status = _fields(PAIR, payload)
            return GoAway(last & NUMBER, status)
        case _:
            return None


def _fields(layout: struct.Struct, payload: bytes) -> tuple[int, ...]:
    if len(payload) != layout.size:
        raise ProtocolError(f"a control frame has {len(payload)} bytes where {layout.size} are due")
    return layout.unpack(payload)


def _stream(word: int) -> int:
    if not word & NUMBER:
        raise ProtocolError("a frame is about stream 0, which there is none")
    return word & NUMBER


def _length(word: int, rest: int) -> int:
    length = rest & 0xFFFFFF
    kind, limit = ("control", CONTROL_LIMIT) if word & CONTROL else ("data", DATA_LIMIT)
    if length > limit:
        raise ProtocolError(f"a {kind} frame has {length} bytes: at most {limit} are taken")
    return length


def _control(kind: Type, payload: bytes, flags: int = 0) -> bytes:
    return _framed(CONTROL | VERSION << 16 | kind, flags, payload)


def _framed(word: int, flags: int, payload: bytes) -> bytes:
    return PAIR.pack(word, flags << 24 | len(payload)) + payload
