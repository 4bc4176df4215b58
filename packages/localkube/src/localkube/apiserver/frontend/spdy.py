"""Implements the server side of SPDY/3.1 without I/O. Converts client bytes to frames, and calls to bytes.

kubectl uses SPDY inside a WebSocket to forward ports. It needs five frame types: SYN_STREAM, SYN_REPLY, DATA,
RST_STREAM and PING. SPDY without a WebSocket is not supported.

```
control frame    1 version(15) | type(16) | flags(8) length(24) | payload
data frame       0 stream(31)             | flags(8) length(24) | payload
```

Header names and values are compressed by one zlib stream per direction for the whole connection, so header blocks of
rejected streams must also be read. Window-based flow control is not supported, because Kubernetes clients do not use
it. They rely on the flow control of the connection itself.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

# The dictionary in section 2.6.10.1 of the specification: words with their lengths, followed by other text.
WORDS: Final = (
    "options", "head", "post", "put", "delete", "trace", "accept", "accept-charset", "accept-encoding",
    "accept-language", "accept-ranges", "age", "allow", "authorization", "cache-control", "connection", "content-base",
    "content-encoding", "content-language", "content-length", "content-location", "content-md5", "content-range",
    "content-type", "date", "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since",
    "if-none-match", "if-range", "if-unmodified-since", "last-modified", "location", "max-forwards", "pragma",
    "proxy-authenticate", "proxy-authorization", "range", "referer", "retry-after", "server", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning", "www-authenticate", "method", "get",
    "status", "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin",
)  # fmt: skip

TAIL: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)

DICTIONARY: Final = b"".join(struct.pack(">I", len(word)) + word.encode() for word in WORDS) + TAIL.encode()

VERSION: Final = 3
CONTROL: Final = 1 << 31
NUMBER: Final = CONTROL - 1
"""The bit mask for stream IDs."""

FIN: Final = 1

WORD: Final = struct.Struct(">I")
PAIR: Final = struct.Struct(">II")

LONGEST: Final = {"control": 65536, "data": 4 * 2**20}
"""The maximum size of a frame or a header block in bytes. Frames of kubectl have up to 32 KiB."""

STREAM_LIMIT: Final = 2000
"""The maximum number of open streams, which is sufficient for a thousand forwarded connections."""

Headers: TypeAlias = Mapping[str, str]
"""The headers of a frame. Multiple values of a header are joined by NUL, as in the protocol."""

NO_HEADERS: Final[Headers] = MappingProxyType({})


class Type(IntEnum):
    """The supported frame types. Other frames, such as SETTINGS and GOAWAY, are skipped."""

    DATA = 0
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6


LAYOUTS: Final = {
    Type.SYN_STREAM: struct.Struct(">IIH"),
    Type.SYN_REPLY: WORD,
    Type.RST_STREAM: PAIR,
    Type.PING: WORD,
}
"""The fields of control frames.

The first field is the stream, or the number of a PING. The second field of RST_STREAM is the status.
"""

HEADED: Final = (Type.SYN_STREAM, Type.SYN_REPLY)
"""The frame types with a header block after their fields."""

HEADERS: Final = 8
"""The type of frames with additional headers.

These frames are rejected, because skipping them would break the decompression of later blocks.
"""


class Status(IntEnum):
    """The reason why a stream is reset."""

    INVALID_STREAM = 2
    REFUSED_STREAM = 3
    CANCEL = 5
    STREAM_ALREADY_CLOSED = 9


class Frame(NamedTuple):
    """A frame of a stream. The `stream` of a PING is its number. A frame with `fin` is the last frame."""

    type: Type
    stream: int
    data: bytes = b""
    headers: Headers = NO_HEADERS
    status: int = 0
    fin: bool = False


class ProtocolError(Exception):
    """The peer violated the protocol or exceeded a limit. The connection must be closed."""


class FrameReader:
    """Splits the bytes of one direction into frames. The bytes can arrive in parts of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes, and return the completed frames. Ignored frame types are skipped."""
        self._buffer += data
        frames: list[Frame] = []
        while len(self._buffer) >= PAIR.size:
            word, rest = PAIR.unpack_from(self._buffer)
            kind, length = "control" if word & CONTROL else "data", rest & 0xFFFFFF
            if length > LONGEST[kind]:
                raise ProtocolError(f"a {kind} frame with {length} bytes exceeds the limit of {LONGEST[kind]} bytes")
            end = PAIR.size + length
            if len(self._buffer) < end:
                break
            payload = bytes(self._buffer[PAIR.size : end])
            del self._buffer[:end]
            fin = bool(rest >> 24 & FIN)
            if kind == "data":
                frames.append(Frame(Type.DATA, _stream_number(word), payload, fin=fin))
            elif word & 0xFFFF == HEADERS:
                raise ProtocolError("HEADERS frames are not supported. Use SYN_STREAM frames")
            elif word & 0xFFFF in LAYOUTS:
                frames.append(self._control(word, payload, fin=fin))
        return frames

    def _control(self, word: int, payload: bytes, *, fin: bool) -> Frame:
        version = word >> 16 & 0x7FFF
        if version != VERSION:
            raise ProtocolError(f"SPDY/{version} is not supported. Use SPDY/{VERSION}")
        kind = Type(word & 0xFFFF)
        layout, has_headers = LAYOUTS[kind], kind in HEADED
        head, block = payload[: layout.size], payload[layout.size :]
        if len(head) < layout.size or (block and not has_headers):
            raise ProtocolError(f"a control frame has {len(payload)} bytes, but {layout.size} are expected")
        first, *others = layout.unpack(head)
        stream = first if kind is Type.PING else _stream_number(first)
        status = 0 if has_headers else sum(others)
        return Frame(kind, stream, headers=self._headers(block) if has_headers else {}, status=status, fin=fin)

    def _headers(self, block: bytes) -> Headers:
        limit = LONGEST["control"]
        try:
            plain = self._zlib.decompress(block, limit)
        except zlib.error as error:
            raise ProtocolError(f"cannot decompress a header block: {error}") from error
        if self._zlib.unconsumed_tail:
            raise ProtocolError(f"a header block exceeds the limit of {limit} bytes")
        return parse_headers(plain)


class FrameWriter:
    """Encodes the frames of one direction."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(zdict=DICTIONARY)

    def write(self, frame: Frame) -> bytes:
        """Return the bytes of a frame."""
        flags = FIN * frame.fin << 24
        if frame.type is Type.DATA:
            return PAIR.pack(frame.stream, flags | len(frame.data)) + frame.data
        layout = LAYOUTS[frame.type]
        fields = (frame.stream, frame.status, 0)[: len(layout.format) - 1]
        payload = layout.pack(*fields)
        if frame.type in HEADED:
            payload += self._zlib.compress(build_headers(frame.headers)) + self._zlib.flush(zlib.Z_SYNC_FLUSH)
        return PAIR.pack(CONTROL | VERSION << 16 | frame.type, flags | len(payload)) + payload


def build_headers(headers: Headers) -> bytes:
    r"""Build an uncompressed header block.

    >>> build_headers({"port": "80"})
    b'\x00\x00\x00\x01\x00\x00\x00\x04port\x00\x00\x00\x0280'
    """
    texts = (text.encode("latin-1") for pair in headers.items() for text in pair)
    return WORD.pack(len(headers)) + b"".join(WORD.pack(len(text)) + text for text in texts)


def parse_headers(block: bytes) -> Headers:
    r"""Parse an uncompressed header block.

    >>> parse_headers(b'\x00\x00\x00\x01\x00\x00\x00\x04port\x00\x00\x00\x0280')
    {'port': '80'}
    """
    count, rest = _read_number(block)
    headers: dict[str, str] = {}
    for _ in range(count):
        name, rest = _read_text(rest)
        value, rest = _read_text(rest)
        if not name or name != name.lower() or name in headers:
            raise ProtocolError(f"header {name!r} is duplicated or not lowercase")
        headers[name] = value
    if rest:
        raise ProtocolError(f"a header block contains data after its {count} headers")
    return headers


def _read_text(block: bytes) -> tuple[str, bytes]:
    length, rest = _read_number(block)
    if length > len(rest):
        raise ProtocolError("a header block is incomplete")
    return rest[:length].decode("latin-1"), rest[length:]


def _read_number(block: bytes) -> tuple[int, bytes]:
    if len(block) < WORD.size:
        raise ProtocolError("a header block is incomplete")
    return WORD.unpack_from(block)[0], block[WORD.size :]


def _stream_number(word: int) -> int:
    if not word & NUMBER:
        raise ProtocolError("stream ID 0 is invalid")
    return word & NUMBER


class Stream(Struct):
    """The state of a stream, which consists of its open directions."""

    is_inward_open: bool = True
    is_outward_open: bool = True


class Connection:
    """The server side of a connection, with the open streams, their directions, and the bytes to send.

    A call for a closed stream has no effect, because the client may reset a stream at any time.
    """

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._writer = FrameWriter()
        self._streams: dict[int, Stream] = {}
        self._last = 0
        self._output = bytearray()

    def receive(self, data: bytes) -> list[Frame]:
        """Process bytes from the client.

        Return the frames on open streams (SYN_STREAM, DATA), and RST_STREAM frames for closed streams.

        PINGs are handled internally. The caller must accept or reset each SYN_STREAM.
        """
        return [event for frame in self._reader.feed(data) for event in self._handle(frame)]

    def accept(self, stream: int) -> None:
        """Accept a stream."""
        if stream in self._streams:
            self._write(Frame(Type.SYN_REPLY, stream))

    def send(self, stream: int, data: bytes, *, fin: bool = False) -> None:
        """Send bytes on a stream. With `fin`, close the sending direction. Receiving continues."""
        if stream in self._streams and self._streams[stream].is_outward_open:
            self._write(Frame(Type.DATA, stream, data, fin=fin))
            if fin:
                self._streams[stream].is_outward_open = False
                self._forget_closed(stream)

    def reset(self, stream: int, status: Status) -> None:
        """Close a stream in both directions."""
        if self._streams.pop(stream, None) is not None:
            self._write(Frame(Type.RST_STREAM, stream, status=status))

    def take_output(self) -> bytes:
        """Remove and return the bytes to send."""
        output = bytes(self._output)
        self._output.clear()
        return output

    def _handle(self, frame: Frame) -> Iterator[Frame]:
        match frame.type:
            case Type.SYN_STREAM:
                yield from self._open(frame)
            case Type.DATA:
                yield from self._receive(frame)
            case Type.RST_STREAM if self._streams.pop(frame.stream, None) is not None:
                yield frame
            case Type.PING if frame.stream % 2:  # even IDs respond to PINGs, which this server does not send
                self._write(frame)

    def _open(self, frame: Frame) -> Iterator[Frame]:
        if frame.stream % 2 == 0 or frame.stream <= self._last:
            raise ProtocolError(
                f"stream {frame.stream} was opened after stream {self._last}. Stream IDs must be odd and increasing"
            )
        self._last = frame.stream
        if len(self._streams) >= STREAM_LIMIT:
            self._write(Frame(Type.RST_STREAM, frame.stream, status=Status.REFUSED_STREAM))
            return
        self._streams[frame.stream] = Stream(is_inward_open=not frame.fin)
        yield frame

    def _receive(self, frame: Frame) -> Iterator[Frame]:
        stream = self._streams.get(frame.stream)
        if stream is None:
            if frame.stream > self._last:
                self._write(Frame(Type.RST_STREAM, frame.stream, status=Status.INVALID_STREAM))
            return  # otherwise, the client sent it before it received the end of the stream
        if not (frame.data or frame.fin):
            return
        if not stream.is_inward_open:
            self.reset(frame.stream, Status.STREAM_ALREADY_CLOSED)
            yield Frame(Type.RST_STREAM, frame.stream, status=Status.STREAM_ALREADY_CLOSED)
            return
        if frame.fin:
            stream.is_inward_open = False
            self._forget_closed(frame.stream)
        yield Frame(Type.DATA, frame.stream, frame.data, fin=frame.fin)

    def _forget_closed(self, number: int) -> None:
        stream = self._streams[number]
        if not stream.is_inward_open and not stream.is_outward_open:
            del self._streams[number]

    def _write(self, frame: Frame) -> None:
        self._output += self._writer.write(frame)
