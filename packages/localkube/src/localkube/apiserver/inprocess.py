"""Provides a transport to an API server in the same process. It works with any event loop.

It supports requests and streams only. `/exec` and `/portforward` need `http.py`.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import cast

from kuberuntime.client.transport import Request, Response, StreamResponse
from localkube.apiserver.server import ApiServer


class InProcessTransport:
    """Implements `kuberuntime.client.transport.Transport` as the given user."""

    def __init__(self, server: ApiServer, user: str) -> None:
        self._server = server
        self._user = user

    async def request(self, request: Request) -> Response:
        """Send one request and return its complete response."""
        response = await self._server.handle(request, self._user)
        if isinstance(response, Response):
            return response
        async with _close_on_exit(response.chunks) as chunks:
            body = b"".join([chunk async for chunk in chunks])
        return Response(response.status, response.headers, body)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Send one request and yield its response as a stream."""
        response = await self._server.handle(request, self._user)
        if isinstance(response, Response):
            yield StreamResponse(response.status, response.headers, _once(response.body))
            return
        async with _close_on_exit(response.chunks) as chunks:
            yield StreamResponse(response.status, response.headers, chunks)

    async def close(self) -> None:
        """Do nothing, because the transport has no resources to release."""


def _close_on_exit(chunks: AsyncIterator[bytes]) -> "aclosing[AsyncGenerator[bytes, None]]":
    """Return a context that closes the generator of a stream when the reader stops."""
    return aclosing(cast("AsyncGenerator[bytes, None]", chunks))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
