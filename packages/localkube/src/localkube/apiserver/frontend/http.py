"""Serves the API on a loopback port, over HTTP or HTTPS.

In: client requests that the `guard` accepts. Out: the responses of `ApiServer.handle`. Watches and logs are streamed in
chunks. `/attach`, `/exec` and `/portforward` use WebSockets (`podstreams.py`). Pass an `ssl_context`
(`certificate.py`), because kubectl and client-go send bearer tokens over HTTPS only.
"""

import errno
import ssl
from asyncio import AbstractEventLoop, Transport, get_running_loop
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from aiohttp import web

from kuberuntime import timeouts
from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.serving.limitlistener import LINGER_SECONDS, LimitListener, abort, connection_limits
from kuberuntime.serving.protocollogs import protocol_logger
from localkube.apiserver.frontend import podstreams
from localkube.apiserver.frontend.authentication import Authenticator
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.apierrors import StatusError
from localkube.apiserver.requests import representation
from localkube.apiserver.routing import routes
from localkube.apiserver.server import FAULTS_PATH, ApiServer
from localkube.apiserver.storage.storeerrors import StoreError
from localkube.apiserver.streams import sockets
from localkube.errors import LocalkubeError

LOOPBACK: Final = "127.0.0.1"

BODY_LIMIT: Final = 3 * 2**20
"""The maximum size of a request body in bytes, as in kube-apiserver."""

BODY_SECONDS: Final = 60.0
"""The timeout for receiving a request body, in seconds."""

REJECTION_SECONDS: Final = 1.0
"""The time in seconds that the connection remains open after the timeout, to send the error."""

CONNECTIONS: Final = 4096
"""The maximum number of connections from commands and the manager. Each watch needs one connection."""

SHUTDOWN_SECONDS: Final = 1.0
"""The time in seconds for running requests to complete when the server stops."""


class ListenError(LocalkubeError):
    """The server cannot listen on the port. The message contains the reason and the solution."""


class HttpServer:
    """A server on one port. Clients with the token have the user name `user`."""

    def __init__(
        self, api: ApiServer, *, token: str, user: str = "admin", ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._api = api
        self._token = token
        self._user = user
        self._guard = Authenticator(0, token)
        self._acceptor = LimitListener(connection_limits(CONNECTIONS), name="API server", context=ssl_context)
        self._web: web.Server | None = None

    async def start(self, port: int = 0) -> int:
        """Listen on the port, or on any free port if it is 0. Return the port."""
        loop = get_running_loop()
        self._web = web.Server(
            self._serve,
            request_factory=_limited_request_factory(loop),
            access_log=None,
            logger=protocol_logger("API server"),
            handler_cancellation=True,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,  # as in kube-apiserver, compressed bodies are not supported
        )
        try:
            await self._acceptor.listen(self._web, LOOPBACK, port)
        except OSError as error:
            what = (
                "in use by a different process" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
            )
            raise ListenError(f"{LOOPBACK}:{port}: {what}. Use a different port, or 0 for a free port") from error
        self._guard = Authenticator(self._acceptor.port, self._token)
        return self._acceptor.port

    async def stop(self) -> None:
        """Stop listening, stop the watches, wait briefly for running requests, and close the connections."""
        if self._web is not None:
            self._acceptor.stop()
            self._api.close_watches()
            self._web.pre_shutdown()  # closes idle connections
            await self._web.shutdown(SHUTDOWN_SECONDS)
            await self._acceptor.close()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._api.is_disconnected and not request.path.startswith(FAULTS_PATH):
            return _abort(request)
        with self._acceptor.serving(request.transport):
            return await self._respond(request)

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        error = self._guard.check(request.headers)
        if error is not None:
            return _reject(error)
        try:
            with self._acceptor.receiving(request.transport, BODY_SECONDS + REJECTION_SECONDS):
                async with timeouts.within(BODY_SECONDS):
                    body = await request.read()
        except TimeoutError:
            return _reject(
                apierrors.StatusError(408, "Timeout", f"the request body was not received within {BODY_SECONDS:.0f} s")
            )
        except web.HTTPRequestEntityTooLarge:
            return _reject(apierrors.too_large(BODY_LIMIT))
        api_request = _request(request, body)
        if sockets.is_upgrade(request):
            return await self._upgrade(request, api_request)
        response = await self._api.handle(api_request, self._user)
        return _plain_response(response) if isinstance(response, Response) else await _stream(request, response)

    async def _upgrade(self, request: web.BaseRequest, api_request: Request) -> web.StreamResponse:
        try:
            call = self._api.call(api_request, self._user)
            if call.subresource not in podstreams.SERVED:
                raise apierrors.bad_request(f"{api_request.path} does not support WebSockets")
            routes.require_served(call)
            return await podstreams.SERVED[call.subresource](self._api.backend, call, request)
        except StatusError as error:
            return _reject(error)
        except StoreError as error:
            return _plain_response(representation.respond_store_error(error))
        except ConnectionResetError:
            return web.Response()  # the client disconnected before the upgrade


def _limited_request_factory(loop: AbstractEventLoop) -> Any:
    """Return a factory for requests with limited bodies."""

    def build(*parts: Any) -> web.BaseRequest:
        message, payload, protocol, writer, task = parts
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT)

    return build


def _request(request: web.BaseRequest, body: bytes) -> Request:
    path, _, query = request.raw_path.partition("?")
    pairs = tuple(parse_qsl(query, keep_blank_values=True)) if query else ()
    return Request(request.method, path, pairs, request.headers, body)


def _reject(error: StatusError) -> web.Response:
    """Respond with an error and close the connection, because its body might be unread."""
    response = _plain_response(representation.respond_rejection(error))
    response.force_close()
    return response


def _abort(request: web.BaseRequest) -> web.Response:
    """Close the connection without sending the response, as an unavailable server does."""
    if isinstance(request.transport, Transport):
        abort(request.transport)
    return web.Response()


def _plain_response(response: Response) -> web.Response:
    return web.Response(status=response.status, headers=response.headers, body=response.body)


async def _stream(request: web.BaseRequest, api_response: StreamResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=api_response.status, headers=api_response.headers)
    async with aclosing(cast("AsyncGenerator[bytes, None]", api_response.chunks)) as chunks:
        try:
            await response.prepare(request)
            async for chunk in chunks:
                await response.write(chunk)
            await response.write_eof()
        except ConnectionResetError:
            return response  # the client disconnected
    return response
