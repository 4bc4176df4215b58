"""Serves admission requests of API servers over HTTPS.

It runs in its own thread with its own event loop, because an API server waits for the response, so that a long
reconcile must not block it. Large reviews must not block small ones either. They are decided in threads, one after the
other. Unusually large reviews have a separate short queue. Decisions are pure and do not use locks. Only start, stop
and the certificate are shared with other threads.
"""

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias

import structlog
from aiohttp import web
from msgspec import Struct, field

from kuberuntime import timeouts
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.limitlistener import LINGER_SECONDS, LimitListener, abort, connection_limits
from kuberuntime.serving.protocollogs import protocol_logger
from kuberuntime.serving.serving import TLSSettings, replace_chain, server_context
from leaderworkerset.webhooks import review
from leaderworkerset.webhooks.review import BadReviewError, Decide

SECONDS: Final = 10.0
"""The timeout for a body, which equals the API server's timeout for the complete response."""

USUAL: Final = 256 * 1024
"""The size in bytes up to which bodies are read concurrently on all connections."""

LARGE_AT_ONCE: Final = 8

Receiving: TypeAlias = Callable[[asyncio.BaseTransport | None, float], AbstractContextManager[None]]
"""Reports that a body is being read from a connection, with a timeout in seconds (`LimitListener.receiving`)."""

REJECTION_SECONDS: Final = 1.0
"""The time in seconds after the timeout during which the connection remains open for the error response."""


class BodyReader:
    """Reads bodies with time and memory limits, because any client can send a body.

    A usual review is small and has a Content-Length. Only a few others are read concurrently, because the memory for
    all bodies is limited.
    """

    def __init__(self, receiving: Receiving, seconds: float = SECONDS) -> None:
        self._receiving = receiving
        self._seconds = seconds
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def read(self, request: web.BaseRequest) -> bytes:
        """Return the body. If it is not complete before the timeout, respond with status 408."""
        if request.content.is_eof():  # it was received together with the headers
            return await request.read()
        try:
            with self._receiving(request.transport, self._seconds + REJECTION_SECONDS):
                return await self._read(request)
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(headers={"connection": "close"}) from error
        except ConnectionError as error:  # the client has disconnected
            raise web.HTTPBadRequest(text="the request body is incomplete") from error

    async def _read(self, request: web.BaseRequest) -> bytes:
        async with timeouts.within(self._seconds):
            if request.content_length is not None and request.content_length <= USUAL:
                return await request.read()
            async with self._large:
                return await request.read()


LARGEST_BODY = 7 * 512 * 1024
"""The maximum size of a review in bytes.

It contains an object and its old version, each with up to 1.5 MiB as in etcd.
"""

LARGE: Final = 64 * 1024
"""The size in bytes from which a review is processed in a thread. Such a review takes a few milliseconds."""

MOST_WAITING: Final = 2 * LARGEST_BODY
"""The maximum total size in bytes of queued reviews above `USUAL`. Two reviews of the maximum size fit."""


class DecisionQueue:
    """Processes reviews in a thread, one at a time.

    Rejects reviews with status 503 if the queue exceeds a size limit.
    """

    def __init__(self, most: float = math.inf) -> None:
        self._most = most
        self._waiting = 0
        self._lock = asyncio.Lock()

    async def respond(self, path: str, decide: Decide, body: bytes) -> web.Response:
        """Process the review when it is first in the queue."""
        if self._waiting + len(body) > self._most:
            raise web.HTTPServiceUnavailable(
                text="too many large reviews are queued. Retry later", headers={"retry-after": "1"}
            )
        self._waiting += len(body)
        try:
            async with self._lock:
                return await asyncio.to_thread(_respond, path, decide, body)
        finally:
            self._waiting -= len(body)


SHUTDOWN_SECONDS = 3.0

Observe: TypeAlias = Callable[[str, int, float], None]
"""Receives the path, status code and duration in seconds of each request, in the server's thread."""


Handle: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.Response]]
"""Handles a request without the aiohttp router and middlewares, which would require 10 % of the time."""


def ignore(_path: str, _code: int, _seconds: float) -> None:
    """Do nothing."""


log = structlog.get_logger(__name__)


class WebhookOptions(Struct, frozen=True, kw_only=True):
    """The options for a webhook server. `body_seconds` is the timeout for a request body."""

    tls: TLSSettings = field(default_factory=TLSSettings)
    observe: Observe = ignore
    body_seconds: float = SECONDS


DEFAULTS: Final = WebhookOptions()


class WebhookServer:
    """Serves the admission paths while the context is active.

    `decisions` maps paths to decisions.

    `async with WebhookServer(Address("127.0.0.1", 0), certificate.chain, decisions) as server: server.url`
    """

    def __init__(
        self,
        address: Address,
        chain: bytes,
        decisions: Mapping[str, Decide],
        options: WebhookOptions = DEFAULTS,
    ) -> None:
        self._body_seconds = options.body_seconds
        self._host = address.host
        self._port = address.port
        self._decisions = decisions
        self._tls = server_context(chain, options.tls)
        self._observe = options.observe
        self._is_draining = False
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._ended: Future[None] = Future()

    @property
    def url(self) -> str:
        """Return the server address for API servers, without a path."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"https://{host}:{self._port}"

    @property
    def is_ready(self) -> bool:
        """Return whether requests are served."""
        return self._thread is not None and self._thread.is_alive()

    async def replace_certificate(self, chain: bytes) -> None:
        """Use a new certificate and key for new connections. Open connections are not affected."""

        async def replace() -> None:  # in the serving thread, so that no handshake is in progress
            replace_chain(self._tls, chain)

        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(replace(), self._loop))

    def drain(self) -> None:
        """Continue to respond, but close each connection afterwards, so that clients use a different replica."""
        self._is_draining = True

    async def __aenter__(self) -> Self:
        started: Future[int] = Future()
        thread = threading.Thread(target=self._run, args=(started,), name="webhooks", daemon=True)
        thread.start()
        self._port = await asyncio.wrap_future(started)
        self._thread = thread
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread = None
        self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.wrap_future(self._ended)

    def _run(self, started: Future[int]) -> None:
        """Serve until stopped. This is the main function of the thread."""
        try:
            asyncio.run(self._serve(started))
        except Exception as error:  # noqa: BLE001
            # The thread boundary: the caller that awaits the start or the exit receives the error.
            (self._ended if started.done() else started).set_exception(error)
        else:
            self._ended.set_result(None)

    async def _serve(self, started: Future[int]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        acceptor = LimitListener(connection_limits(), name="webhooks", context=self._tls)
        server = web.Server(
            self._handler(acceptor),
            request_factory=partial(web.BaseRequest, loop=self._loop, client_max_size=LARGEST_BODY),
            access_log=None,
            auto_decompress=False,  # API servers do not compress reviews, and the expanded size is unknown
            lingering_time=LINGER_SECONDS,
            logger=protocol_logger("webhooks"),
        )
        runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await acceptor.serve(runner, self._host, self._port)
            started.set_result(acceptor.port)
            await self._stop.wait()
        finally:
            acceptor.stop()
            await _shut_down(runner)
            await acceptor.close()

    def _handler(self, acceptor: LimitListener) -> Handle:
        reading = BodyReader(acceptor.receiving, self._body_seconds)
        usual, large = DecisionQueue(), DecisionQueue(MOST_WAITING)

        async def respond(request: web.BaseRequest, decide: Decide) -> web.Response:
            if request.method != "POST":
                raise web.HTTPMethodNotAllowed(request.method, ("POST",))
            if encoding := request.headers.get("content-encoding"):
                raise web.HTTPBadRequest(text=f"the body must not be compressed (content-encoding: {encoding})")
            body = await reading.read(request)
            if len(body) < LARGE:
                return _respond(request.path, decide, body)
            return await (usual if len(body) <= USUAL else large).respond(request.path, decide, body)

        async def measured(request: web.BaseRequest) -> web.Response:
            if (decide := self._decisions.get(request.path)) is None:
                raise web.HTTPNotFound
            started, code = self._loop.time(), 500
            try:
                response = await respond(request, decide)
                code = 500 if isinstance(response, FailedResponse) else response.status
            except web.HTTPException as rejection:
                code = rejection.status
                raise
            finally:
                self._observe(request.path, code, self._loop.time() - started)
            if self._is_draining:
                response.force_close()
            return response

        async def handle(request: web.BaseRequest) -> web.Response:
            with acceptor.serving(request.transport):
                return await measured(request)

        return handle


class FailedResponse(web.Response):
    """The denial for an internal error, with status 200, so that users see the message. It is reported as 500."""


async def _shut_down(runner: web.ServerRunner) -> None:
    """Respond to pending requests, and then abort the connections, because a TLS shutdown can take too long."""
    connections = runner.server.connections if runner.server is not None else []
    transports = [connection.transport for connection in connections]
    await runner.cleanup()
    for transport in transports:
        if transport is not None:
            abort(transport)


def _respond(path: str, decide: Decide, body: bytes) -> web.Response:
    kind = web.Response
    try:
        request = review.decode(body)
    except BadReviewError as error:
        return web.Response(status=400, body=review.unreadable(error), content_type="application/json")
    try:
        response = review.respond(request, decide)
    except Exception as error:
        # The server boundary: an unexpected error becomes a denial with its message, and never an outage.
        log.exception("admission failed", path=path)
        kind, response = (
            FailedResponse,
            review.internal_error(request.uid, f"internal error: {type(error).__name__}: {error}"),
        )
    return kind(body=response, content_type="application/json")
