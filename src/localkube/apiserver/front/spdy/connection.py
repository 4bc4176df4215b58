"""The server side of a SPDY connection: which streams are open, in which directions, and which bytes to send.

In: the client's bytes (`receive`) and the calls of the code that serves the streams (`accept`, `send`, `finish`,
`reset`). Out: events, and bytes to be sent (`take`). PINGs are answered here. A call for a stream that is closed has no
effect: the client may reset a stream at any time.

There is no flow control by windows: the clients of Kubernetes do not use it, and rely on the flow control of the
connection itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from localkube.apiserver.front.spdy.codec import FrameReader, FrameWriter
from localkube.apiserver.front.spdy.frames import (
    Data,
    Frame,
    GoAway,
    GoAwayStatus,
    MoreHeaders,
    Ping,
    ResetStatus,
    RstStream,
    SynReply,
    SynStream,
)
from localkube.apiserver.front.spdy.headers import Headers, ProtocolError

STREAM_LIMIT: Final = 2000
"""Streams open at once: a thousand forwarded connections."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The client opened a stream and waits for it to be accepted or reset."""

    stream: int
    headers: Headers


@dataclass(frozen=True, slots=True)
class BytesReceived:
    """The client sent bytes."""

    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """The client sends nothing more on a stream, but may still receive."""

    stream: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A stream was closed in both directions."""

    stream: int


Event: TypeAlias = StreamOpened | BytesReceived | Ended | Dropped


@dataclass(slots=True)
class Stream:
    """The state of a stream: which directions are open."""

    inward: bool
    outward: bool


class Connection:
    """The state of one connection."""

    def __init__(self) -> None:
        self._reader = FrameReader()
        self._writer = FrameWriter()
        self._streams: dict[int, Stream] = {}
        self._last = 0
        self._gone_away = False
        self._output = bytearray()

    def receive(self, data: bytes) -> list[Event]:
        """Process bytes of the client and return their events."""
        return [event for frame in self._reader.feed(data) for event in self._handle(frame)]

    def accept(self, stream: int) -> None:
        """Accept a stream."""
        if stream in self._streams:
            self._write(SynReply(stream))

    def send(self, stream: int, data: bytes) -> None:
        """Send bytes on a stream."""
        if self._is_open(stream):
            self._write(Data(stream, data))

    def finish(self, stream: int) -> None:
        """Send nothing more on a stream, but still receive."""
        if self._is_open(stream):
            self._write(Data(stream, b"", fin=True))
            self._streams[stream].outward = False
            self._forget_closed(stream)

    def reset(self, stream: int, status: ResetStatus) -> None:
        """Close a stream in both directions."""
        if self._streams.pop(stream, None) is not None:
            self._write(RstStream(stream, status))

    def go_away(self, status: GoAwayStatus) -> None:
        """Accept no more streams."""
        self._gone_away = True
        self._write(GoAway(self._last, status))

    def take(self) -> bytes:
        """Return the bytes to send, and remove them from the connection."""
        output = bytes(self._output)
        self._output.clear()
        return output

    def _handle(self, frame: Frame) -> Iterator[Event]:
        match frame:
            case SynStream():
                yield from self._open(frame)
            case Data(stream, data, fin):
                yield from self._receive(stream, data, fin=fin)
            case MoreHeaders(stream, _, fin):
                yield from self._receive(stream, b"", fin=fin)
            case RstStream(stream):
                if self._streams.pop(stream, None) is not None:
                    yield Dropped(stream)
            case Ping(number) if number % 2:  # even ones answer PINGs of this server, which sends none
                self._write(frame)
            case GoAway():
                self._gone_away = True

    def _open(self, frame: SynStream) -> Iterator[Event]:
        if frame.stream % 2 == 0 or frame.stream <= self._last:
            raise ProtocolError(f"stream {frame.stream} is opened after stream {self._last}: take odd, rising numbers")
        self._last = frame.stream
        if self._gone_away or len(self._streams) >= STREAM_LIMIT:
            self._write(RstStream(frame.stream, ResetStatus.REFUSED_STREAM))
            return
        self._streams[frame.stream] = Stream(inward=True, outward=not frame.unidirectional)
        yield StreamOpened(frame.stream, frame.headers)
        yield from self._receive(frame.stream, b"", fin=frame.fin)

    def _receive(self, number: int, data: bytes, *, fin: bool) -> Iterator[Event]:
        stream = self._streams.get(number)
        if stream is None:
            if number > self._last:
                self._write(RstStream(number, ResetStatus.INVALID_STREAM))
            return  # otherwise it was sent before the client received the end of the stream
        if not stream.inward:
            if data or fin:
                self.reset(number, ResetStatus.STREAM_ALREADY_CLOSED)
                yield Dropped(number)
            return
        if data:
            yield BytesReceived(number, data)
        if fin:
            stream.inward = False
            self._forget_closed(number)
            yield Ended(number)

    def _is_open(self, stream: int) -> bool:
        return stream in self._streams and self._streams[stream].outward

    def _forget_closed(self, number: int) -> None:
        stream = self._streams[number]
        if not stream.inward and not stream.outward:
            del self._streams[number]

    def _write(self, frame: Frame) -> None:
        self._output += self._writer.write(frame)
