"""The seam between the client and an API server: one request, one stream.

One implementation is HTTP (`http.py`); another calls an API server in the same process, so that a whole cluster can run
in one thread under simulated time.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request: `path` without query, decoded `query` pairs in order, body bytes."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    def asking(self, *query: tuple[str, str]) -> "Request":
        """Return the request with further query pairs."""
        return Request(self.method, self.path, (*self.query, *query), self.headers, self.body)


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response. Header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class StreamResponse(Struct, frozen=True):
    """A response whose body arrives in chunks of any size, until the server or the reader ends it."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """Carries requests to one API server. Connection errors raise `kuberuntime.errors.ConnectionFailedError`."""

    async def request(self, request: Request) -> Response:
        """Send one request and return its complete response."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send one request and yield its response as a stream; leaving the context closes the connection."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
