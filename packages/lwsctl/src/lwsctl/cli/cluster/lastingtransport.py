"""A transport for programs that outlive their cluster: it reads the kubeconfig again after a refusal or a failure.

A cluster of this machine may have another port after `lws up`, and a login writes a new token. The kubeconfig is read
after a refusal (401) or a failed connection, and only used if its content changed. Reads and refused
requests are sent again. A write without an answer is not: the server may have done it.
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
"""Earlier transports that stay open: their watches may still be answered."""


class LastingTransport(Transport):
    """Passes requests to a transport that `make` builds from the files, and builds it again when they changed."""

    def __init__(self, files: Callable[[], Iterable[Path]], make: Callable[[], "HTTPTransport"]) -> None:
        self._files = files
        self._make = make
        self._content = content(files())
        self._current = make()
        self._earlier: list[HTTPTransport] = []
        self.on_renewal: list[Callable[[], None]] = []
        """Called when there is another transport: it may lead to another cluster, with other versions of objects."""

    async def request(self, request: Request) -> Response:
        """Send one request and return its answer."""
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
        """Yield the answer as a stream; callers that follow it send the request again themselves."""
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
        """Open a WebSocket with several byte streams."""
        return self._current.channels(path, query, protocol)

    async def close(self) -> None:
        """Release all connections."""
        for transport in (*self._earlier, self._current):
            await transport.close()

    async def _renew(self, used: "HTTPTransport") -> bool:
        """Read the files again; return whether the transport differs from the transport that was used."""
        if self._current is not used:
            return True  # another request, which failed at the same time, was first
        try:
            new_content = content(self._files())
            if new_content == self._content:
                return False
            transport = self._make()
        except (ConfigError, OSError):  # written only half, or deleted with its cluster
            return False
        self._content = new_content
        self._earlier.append(self._current)
        self._current = transport
        while len(self._earlier) > KEPT:
            await self._earlier.pop(0).close()
        for callback in self.on_renewal:
            callback()
        return True


def content(files: Iterable[Path]) -> bytes:
    """Return a digest of the content of files."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).digest()
