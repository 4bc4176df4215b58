"""Implements the HTTP transport (`transport.py`) with an aiohttp session.

In this package, only this module, `channels.py` and the servers below `serving/` import aiohttp.

Input: an `Access`. Output: responses, or a `ConnectionFailedError` with the server's address if there is no response.
Connections are kept alive and shared. If an idle connection is already closed, aiohttp repeats an idempotent request
(GET, PUT, DELETE) once. Other requests fail, because only the caller can decide whether they may be sent twice. After
a 401 response, the credentials are renewed once. If the server certificate is not trusted, the CA file is reread.
Redirects are not followed, so that a token is never sent to a different host. Streams use a separate pool, so that
watches do not occupy connections for requests. Fenced writes use a third pool, whose sockets send data only while the
fence is open.
"""

import asyncio
import io
import os
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, TypedDict
from weakref import WeakSet

import aiohttp
from yarl import URL

from kuberuntime import timeouts
from kuberuntime.access import tls, urls
from kuberuntime.access.access import Access
from kuberuntime.access.credentials import Credentials
from kuberuntime.client.channels import Channels
from kuberuntime.client.fence import READS, Fence, FencedSocket
from kuberuntime.client.requests import Query
from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.errors import ConfigError, ConnectionFailedError, from_response

CONNECTIONS: Final = 64
"""The maximum number of connections for requests. Additional requests wait."""

CONNECT_SECONDS: Final = 10.0
REQUEST_SECONDS: Final = 65.0
"""The timeout of a request in seconds. The API server itself has a timeout of 60 s."""

KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""The TCP keepalive settings. They detect an unreachable peer after a minute, even on an idle stream."""

LARGE: Final = 2**18
"""The chunk size of a request body, because aiohttp logs a warning about chunks above 1 MiB."""

CLOSED: Final = -1
"""The file descriptor of a closed socket."""

CLOSING_STEPS: Final = 20
"""The maximum number of event loop iterations until a connection is closed.

Two or three iterations are usually sufficient.
"""

ANY_TYPE: Final[Mapping[str, str]] = {"accept": "*/*"}
"""The Accept header of an upgrade. A kubelet rejects other values, because it declares no stream media types."""

UPGRADE: Final[Mapping[str, str]] = {
    **ANY_TYPE,
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
"""The headers of a WebSocket request. The request is repeated to determine why it was rejected."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class _Options(TypedDict):
    headers: dict[str, str]
    ssl: ssl.SSLContext | bool
    server_hostname: str | None
    proxy: str | None


class HTTPTransport:
    """An HTTP transport to one API server, with a connection pool for requests and one connection per stream."""

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str,
        seconds: float = REQUEST_SECONDS,
        connections: int = CONNECTIONS,
        fence: Fence | None = None,
    ) -> None:
        self._access = access
        self._trust = access.tls
        self._fence = fence
        self._connections = connections
        self._seconds = seconds
        self._base = URL(access.server)
        self._proxy = urls.choose_proxy(access.server, access.proxy, os.environ) or None
        self._is_encrypted = "https" in {self._base.scheme, URL(self._proxy or "").scheme}
        self._headers = {"accept": "application/json", "user-agent": user_agent}
        self._identity: tuple[bytes, bytes] | None = None
        self._context: ssl.SSLContext | bool = True
        self._requests: aiohttp.ClientSession | None = None
        self._writes: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._sockets = WeakSet[socket.socket]()

    async def request(self, request: Request) -> Response:
        """Send one request and return its complete response."""
        async with self._open_response(self._request_session(request), request) as response:
            with self._named_errors():
                return Response(response.status, _lowercase_headers(response), await response.read())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Send one request and yield its response as a stream. The connection is closed when the context exits."""
        async with (
            self._open_response(self._stream_session(), request) as response,
            aclosing(self._chunks(response)) as chunks,
        ):
            try:
                yield StreamResponse(response.status, _lowercase_headers(response), chunks)
            finally:
                response.close()

    @asynccontextmanager
    async def channels(self, path: str, query: Query, protocol: str) -> AsyncIterator[Channels]:
        """Open a WebSocket with multiplexed byte streams for `/exec` and `/portforward`."""
        credentials = await self._access.credentials.get()
        try:
            with self._named_errors():
                url = self._url(Request("GET", path, query))
                options = self._options(credentials, ANY_TYPE)
                socket = await self._stream_session().ws_connect(url, protocols=(protocol,), **options)
        except ConnectionFailedError as failure:
            if isinstance(failure.__cause__, aiohttp.WSServerHandshakeError):
                await self._raise_server_error(path, query, protocol)
            raise
        async with socket:
            yield Channels(socket)

    async def close(self) -> None:
        """Close all connections before the event loop is closed.

        When a TLS connection (for example of a watch) is closed, aiohttp waits for the server's `close_notify` in the
        background. This method shuts down open sockets, so that their transports close soon.
        """
        for session in (self._requests, self._writes, self._streams):
            if session is not None:
                await session.close()
        self._requests = self._writes = self._streams = None
        for sock in [sock for sock in self._sockets if sock.fileno() != CLOSED]:
            with suppress(OSError):  # not connected, or closed by the server
                sock.shutdown(socket.SHUT_RDWR)
        for _ in range(CLOSING_STEPS):
            if all(sock.fileno() == CLOSED for sock in self._sockets):
                break
            await asyncio.sleep(0)

    @asynccontextmanager
    async def _open_response(
        self, session: aiohttp.ClientSession, request: Request
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the response after its headers are read. If the credentials are rejected, renew them and retry."""
        credentials = await self._access.credentials.get()
        response = await self._send(session, request, credentials)
        try:
            if response.status == HTTPStatus.UNAUTHORIZED and await self._access.credentials.renew(credentials):
                response.release()
                response = await self._send(session, request, await self._access.credentials.get())
            yield response
        finally:
            response.release()

    async def _send(
        self, session: aiohttp.ClientSession, request: Request, credentials: Credentials
    ) -> aiohttp.ClientResponse:
        # Requests have a separate timeout for the complete response.
        seconds = self._seconds if session is self._streams else None
        with self._named_errors():
            async with timeouts.within(seconds):
                try:
                    return await self._send_once(session, request, credentials)
                except aiohttp.ClientConnectorCertificateError:  # nothing has been sent yet
                    if not self._reload_ca():
                        raise
                    return await self._send_once(session, request, credentials)

    async def _send_once(
        self, session: aiohttp.ClientSession, request: Request, credentials: Credentials
    ) -> aiohttp.ClientResponse:
        return await session.request(
            request.method,
            self._url(request),
            data=_body(request),
            allow_redirects=False,
            **self._options(credentials, request.headers),
        )

    def _reload_ca(self) -> bool:
        """Reread the CA file, because the CA of a cluster can be replaced. Return whether the file changed."""
        trust = self._trust.reread()
        if trust is self._trust:
            return False
        try:
            tls.build_context(trust, Credentials())
        except ConfigError:  # only partially written
            return False
        self._trust, self._identity = trust, None
        return True

    def _options(self, credentials: Credentials, headers: Mapping[str, str] = NO_HEADERS) -> _Options:
        """Return the options for all requests to this server."""
        authorization = {"authorization": f"Bearer {credentials.token}"} if credentials.token else {}
        return {
            "headers": {**self._headers, **headers, **authorization},
            "ssl": self._tls(credentials),
            "server_hostname": self._access.tls.server_name or None,
            "proxy": self._proxy,
        }

    async def _raise_server_error(self, path: str, query: Query, protocol: str) -> None:
        """Raise the server's error for a failed upgrade, because the WebSocket handshake discards it."""
        headers = {**UPGRADE, "sec-websocket-protocol": protocol}
        async with self.stream(Request("GET", path, query, headers)) as response:
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise from_response(response.status, b"".join([chunk async for chunk in response.chunks]))

    def _session(self, *, connections: int, seconds: float | None, fence: Fence | None = None) -> aiohttp.ClientSession:
        make = partial(self._socket, fence=fence)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, socket_factory=make),
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("accept-encoding", "content-type"),
        )

    def _socket(self, address: aiohttp.AddrInfoType, *, fence: Fence | None) -> socket.socket:
        sock = _make_socket(address, fence)
        self._sockets.add(sock)
        return sock

    def _request_session(self, request: Request) -> aiohttp.ClientSession:
        """Return the session (connection pool) for a request. Fenced writes use a separate session."""
        if self._fence is not None and request.method not in READS:
            if self._writes is None:
                self._writes = self._session(connections=self._connections, seconds=self._seconds, fence=self._fence)
            return self._writes
        if self._requests is None:
            self._requests = self._session(connections=self._connections, seconds=self._seconds)
        return self._requests

    def _stream_session(self) -> aiohttp.ClientSession:
        if self._streams is None:
            self._streams = self._session(connections=0, seconds=None)
        return self._streams

    def _url(self, request: Request) -> URL:
        path = self._base.path.rstrip("/") + request.path
        url = self._base.with_path(path)
        return url.with_query(request.query) if request.query else url

    def _tls(self, credentials: Credentials) -> ssl.SSLContext | bool:
        """Return the TLS context for these credentials. Create a new context if the certificate changed."""
        if self._is_encrypted:
            identity = (credentials.certificate, credentials.key)
            if identity != self._identity:
                self._context, self._identity = tls.build_context(self._trust, credentials), identity
        return self._context

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
        with self._named_errors():
            async for chunk in response.content.iter_any():
                yield chunk

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Convert connection errors to a `ConnectionFailedError` with the server address."""
        try:
            yield
        except TimeoutError as error:
            raise ConnectionFailedError(f"{self._access.server} did not respond in time") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ConnectionFailedError(
                f"cannot reach {self._access.server}: {describe_connection_error(error)}"
            ) from error


def describe_connection_error(error: Exception) -> str:
    """Return the reason for a failed connection as a message for users."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {error.certificate_error}"
        case aiohttp.ClientConnectorDNSError():
            return f"unknown host {error.host!r}"
        case aiohttp.ClientConnectorError(os_error=os_error):
            return os.strerror(os_error.errno) if os_error.errno else str(os_error)
        case aiohttp.ClientResponseError():  # its message contains the URL, which includes the proxy password
            who = "its proxy" if isinstance(error, aiohttp.ClientHttpProxyError) else "it"
            return f"{who} responded with {error.status} {error.message}"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection without a response"
        case _:
            return urls.redact(str(error)) or type(error).__name__


def _body(request: Request) -> bytes | io.BytesIO | None:
    """Return the body for aiohttp. A large body is a file, which aiohttp sends in one chunk per loop iteration."""
    return io.BytesIO(request.body) if len(request.body) > LARGE else request.body or None


def _make_socket(address: aiohttp.AddrInfoType, fence: Fence | None) -> socket.socket:
    """Return a socket that detects an unreachable peer. With a fence, it sends data only while the fence is open."""
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol) if fence is None else FencedSocket(fence, family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE.items():
        if hasattr(socket, option):  # macOS uses different names for some options
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


def _lowercase_headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """Return the headers by lowercase name.

    Repeated headers are joined, because API servers send one header per warning.
    """
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers
