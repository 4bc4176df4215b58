"""Defines the interface between the client and an API server, which consists of requests and streams.

One implementation uses HTTP (`http.py`). The other one calls an API server in the same process, so that a whole cluster
can run in one thread with simulated time.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request, with the `path` without query, decoded `query` pairs in order, and the body."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    def with_query(self, *query: tuple[str, str]) -> "Request":
        """Return the request with additional query pairs."""
        return Request(self.method, self.path, (*self.query, *query), self.headers, self.body)


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response. Header names are lowercase."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class StreamResponse(Struct, frozen=True):
    """A response whose body is received in chunks of any size, until the server or the reader closes it."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """Sends requests to one API server. Connection errors raise `kuberuntime.errors.ConnectionFailedError`."""

    async def request(self, request: Request) -> Response:
        """Send one request and return its complete response."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        """Send one request and yield its response as a stream. The connection is closed when the context exits."""

    async def close(self) -> None:
        """Close the connections of the inner transport."""
