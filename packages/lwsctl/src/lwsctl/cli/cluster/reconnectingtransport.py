"""Defines a transport that reloads the kubeconfig after a rejection or failure.

It therefore works with a recreated cluster.

A local cluster may have a different port after `lws up`, and a login writes a new token. The kubeconfig is read after a
response with status 401 or a failed connection, and used only if its content changed. Read requests and rejected
requests are retried. A write without a response is not retried, because the server may have executed it.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kuberuntime.client.requests import Query
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.errors import ConfigError, ConnectionFailedError

if TYPE_CHECKING:
    from kuberuntime.client.channels import Channels  # it imports aiohttp
    from kuberuntime.client.http import HTTPTransport

KEPT: Final = 2
"""The number of previous transports that remain open because watches may still use them."""


class ReconnectingTransport(Transport):
    """Sends requests through a transport that `make` builds from files, and rebuilds it when the files change."""

    def __init__(self, files: Callable[[], Iterable[Path]], make: Callable[[], "HTTPTransport"]) -> None:
        self._files = files
        self._make = make
        self._content = content_digest(files())
        self._current = make()
        self._earlier: list[HTTPTransport] = []
        self.on_renewal: list[Callable[[], None]] = []
        """Called after the transport is replaced. The new cluster may have different resource versions."""

    async def request(self, request: Request) -> Response:
        """Send a request and return the response."""
        used = self._current
        try:
            response = await used.request(request)
        except ConnectionFailedError:
            if not await self._renew(used) or request.method != "GET":
                raise
            return await self._current.request(request)
        if response.status == HTTPStatus.UNAUTHORIZED and await self._renew(used):
            return await self._current.request(request)
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Yield the response as a stream. Callers that watch must retry the request themselves."""
        used = self._current
        try:
            async with used.stream(request) as response:
                if response.status == HTTPStatus.UNAUTHORIZED:
                    await self._renew(used)
                yield response
        except ConnectionFailedError:
            await self._renew(used)
            raise

    def channels(self, path: str, query: Query, protocol: str) -> AbstractAsyncContextManager["Channels"]:
        """Open a WebSocket with multiple byte streams."""
        return self._current.channels(path, query, protocol)

    async def close(self) -> None:
        """Release all connections."""
        for transport in (*self._earlier, self._current):
            await transport.close()

    async def _renew(self, used: "HTTPTransport") -> bool:
        """Reread the files. Return whether the transport differs from the previous one."""
        if self._current is not used:
            return True  # another request that failed at the same time was first
        try:
            new_content = content_digest(self._files())
            if new_content == self._content:
                return False
            transport = self._make()
        except (ConfigError, OSError):  # incomplete, or deleted with its cluster
            return False
        self._content = new_content
        self._earlier.append(self._current)
        self._current = transport
        while len(self._earlier) > KEPT:
            await self._earlier.pop(0).close()
        for callback in self.on_renewal:
            callback()
        return True


def content_digest(files: Iterable[Path]) -> bytes:
    """Return a digest of the contents of files."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).digest()
