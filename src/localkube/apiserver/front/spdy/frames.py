"""The frames of SPDY/3.1, as values."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from localkube.apiserver.front.spdy.headers import Headers


class ResetStatus(IntEnum):
    """Why a stream is reset."""

    PROTOCOL_ERROR = 1
    INVALID_STREAM = 2
    REFUSED_STREAM = 3
    CANCEL = 5
    STREAM_ALREADY_CLOSED = 9


class GoAwayStatus(IntEnum):
    """Why no more streams are accepted."""

    OK = 0
    PROTOCOL_ERROR = 1


@dataclass(frozen=True, slots=True)
class SynStream:
    """The peer opens a stream. With `fin` it sends nothing on it; with `unidirectional` it receives nothing on it."""

    stream: int
    headers: Headers = field(default_factory=dict)
    fin: bool = False
    unidirectional: bool = False


@dataclass(frozen=True, slots=True)
class SynReply:
    """A stream is accepted."""

    stream: int
    headers: Headers = field(default_factory=dict)
    fin: bool = False


@dataclass(frozen=True, slots=True)
class RstStream:
    """A stream is closed at once, in both directions."""

    stream: int
    status: int


@dataclass(frozen=True, slots=True)
class Ping:
    """A PING, to be sent back unchanged."""

    number: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """The sender accepts no more streams; it has processed those up to `last_stream`."""

    last_stream: int
    status: int


@dataclass(frozen=True, slots=True)
class MoreHeaders:
    """Further headers of a stream (HEADERS)."""

    stream: int
    headers: Headers = field(default_factory=dict)
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream; `fin`: the last ones."""

    stream: int
    data: bytes
    fin: bool = False


Frame: TypeAlias = SynStream | SynReply | RstStream | Ping | GoAway | MoreHeaders | Data
