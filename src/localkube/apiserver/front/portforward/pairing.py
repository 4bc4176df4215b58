"""Pairs the streams of a tunnel: every forwarded connection has one for data and one for errors. Pure.

In: the headers `streamtype`, `port` and `requestid` of streams, as they are opened. Out: pairs, complete once both are
open.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from localkube.apiserver.front.spdy.headers import Headers

StreamType: TypeAlias = Literal["data", "error"]
PORT: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
STREAM_TYPES: Final[tuple[StreamType, ...]] = get_args(StreamType)


class PairingError(Exception):
    """The headers of a stream are invalid or do not fit its pair; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of one stream, from its headers."""

    request: str
    type: StreamType
    port: int


@dataclass(slots=True)
class Pair:
    """The streams of one request; 0 for a stream that is not open yet."""

    request: str
    port: int
    data: int = 0
    error: int = 0

    @property
    def missing(self) -> StreamType | None:
        """Return the type of the stream that is not open yet."""
        if not self.data:
            return "data"
        return None if self.error else "error"


class Pairs:
    """The pairs that wait for their second stream."""

    def __init__(self) -> None:
        self._waiting: dict[str, Pair] = {}

    def add(self, stream: int, purpose: Purpose) -> Pair:
        """Add a stream and return its pair; a complete pair is not waiting any more."""
        pair = self._waiting.get(purpose.request) or Pair(purpose.request, purpose.port)
        if purpose.port != pair.port:
            raise PairingError(f"request {pair.request} is for port {pair.port}, its other stream for {purpose.port}")
        if getattr(pair, purpose.type):
            raise PairingError(f"request {pair.request} has its {purpose.type} stream already")
        setattr(pair, purpose.type, stream)
        if pair.missing:
            self._waiting[pair.request] = pair
        else:
            self.drop(pair)
        return pair

    def drop(self, pair: Pair) -> None:
        """Stop waiting for the second stream of a pair."""
        if self._waiting.get(pair.request) is pair:
            del self._waiting[pair.request]


def purpose(stream: int, headers: Headers) -> Purpose:
    """Read the headers of a stream.

    >>> purpose(1, {"streamtype": "error", "port": "80", "requestid": "7"})
    Purpose(request='7', type='error', port=80)
    """
    kind = next((one for one in STREAM_TYPES if one == headers.get("streamtype")), None)
    if kind is None:
        raise PairingError(
            f'header streamtype: Invalid value: "{headers.get("streamtype", "")}": must be data or error'
        )
    port = headers.get("port", "")
    if not PORT.fullmatch(port) or not 0 < int(port) < 65536:
        raise PairingError(f'header port: Invalid value: "{port}": must be between 1 and 65535, inclusive')
    return Purpose(headers.get("requestid") or _guess(stream, kind), kind, int(port))


def _guess(stream: int, kind: StreamType) -> str:
    """Return the request id for clients that send none: they open the error stream, then the data stream."""
    return str(stream if kind == "error" else stream - 2)
