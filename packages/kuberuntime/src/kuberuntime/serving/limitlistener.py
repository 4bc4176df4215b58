"""Accepts connections with a connection limit and a time limit for each wait.

Input: an address, a protocol factory, limits. Output: connections that are served, until `close`. A connection waits
or is served. It waits from its acceptance until the headers of its first request are read (including the TLS
handshake), while the body of a request is read, and between requests. Each of these waits has a time limit. When the
maximum number of connections is open, the connection that has waited longest is closed for the next one. If all
connections are being served, new connections stay in the kernel's queue. So idle clients cannot block other clients,
and file descriptors remain for the rest of this process.

The accept loop of asyncio has no such limits, and logs each failure. At the limit of file descriptors, it logs
thousands of lines per second.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeAlias

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from msgspec import Struct

from kuberuntime import timeouts
from kuberuntime.serving.protocollogs import LOG_SECONDS

HANDSHAKE_SECONDS: Final = 10.0
HEADER_SECONDS: Final = 20.0
"""The maximum time in seconds until a new connection has sent the headers of its first request."""

IDLE_SECONDS: Final = 120.0
"""The maximum time in seconds between two requests. API servers close idle connections after 90 s."""

CONNECTIONS: Final = 256
BACKLOG: Final = 512
AT_ONCE: Final = 16
"""The number of connections that are accepted before the event loop performs other work."""

PAUSE_SECONDS: Final = 1.0
"""The delay in seconds before accepting further connections, after the system rejected a connection."""

CLOSING_SECONDS: Final = 1.0

LINGER_SECONDS: Final = 1.0
"""The time in seconds for reading the rest of a body after the response, so that the client can read the response.

Reading continues after the client has disconnected, outside of the connection limit. With aiohttp's 10 s, clients could
exhaust the memory.
"""

GRACE_SECONDS: Final = 1.0
"""The time in seconds after a request in which its connection remains open to send the response."""

Factory: TypeAlias = Callable[[], asyncio.BaseProtocol]

EVERYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - the caller's choice
"""The hosts that represent all addresses of both IP families, as in Go. A pod might have only an IPv6 address."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ConnectionLimits(Struct, frozen=True):
    """The maximum number of open connections, and the timeouts in seconds for headers and between requests."""

    connections: int = CONNECTIONS
    headers: float = HEADER_SECONDS
    idle: float = IDLE_SECONDS


def connection_limits(most: int = CONNECTIONS, *, share: float = 0.5) -> ConnectionLimits:
    """Return a limit of `most` connections, or a lower limit if `share` of the file descriptors is lower."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows has no such limit
        return ConnectionLimits(most)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ConnectionLimits(most if soft == resource.RLIM_INFINITY else max(min(most, int(soft * share)), 1))


class AcceptedConnection(socket.socket):
    """A connection socket. The connection is counted until its file descriptor is closed."""

    def __init__(self, accepted: socket.socket, closed: Callable[[], None]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._note_closed = closed

    def close(self) -> None:
        """Close the file descriptor, and release its slot for a new connection."""
        was_open = self.fileno() >= 0
        super().close()
        if was_open:
            self._note_closed()


def abort(transport: asyncio.Transport) -> None:
    """Abort a connection without waiting for the peer, unless it is already closing.

    Before Python 3.11.3, aborting a TLS transport that was closed twice raises AttributeError.
    """
    with suppress(AttributeError):
        transport.abort()


class LimitListener:
    """Accepts connections on a port. Protocols must report when they serve a request (`serving`, `middleware`)."""

    def __init__(self, limits: ConnectionLimits, *, name: str, context: ssl.SSLContext | None = None) -> None:
        self._limits = limits
        self._name = name
        self._context = context
        self._listening: list[socket.socket] = []
        self._open: dict[int, _Connection] = {}
        self._openings: set[asyncio.Task[None]] = set()
        self._accepting: dict[socket.socket, asyncio.Task[None]] = {}
        self._factory: Factory = asyncio.Protocol
        self._is_accepting = False
        self._resuming: asyncio.TimerHandle | None = None
        self._asking: asyncio.TimerHandle | None = None
        self._logged_at = float("-inf")
        self._unlogged = 0
        self._all_closed = asyncio.Event()
        self.port = 0

    async def listen(self, factory: Factory, host: str | None, port: int) -> None:
        """Serve each connection with a protocol of the factory. Raise `OSError` if the port cannot be bound."""
        loop = asyncio.get_running_loop()
        # asyncio binds all addresses of a host, but does not accept connections.
        address = None if host in EVERYWHERE else host
        bound = await loop.create_server(asyncio.Protocol, address, port, start_serving=False)
        try:
            self._listening = [sock.dup() for sock in bound.sockets]
        finally:
            bound.close()
        for listener in self._listening:
            listener.setblocking(False)
            listener.listen(BACKLOG)
        self._factory = factory
        self.port = int(self._listening[0].getsockname()[1])
        self._accept_again()

    async def serve(self, runner: web.BaseRunner, host: str | None, port: int) -> None:
        """Serve a prepared runner. Raise `OSError` if the port cannot be bound."""
        if runner.server is None:
            raise RuntimeError("the runner must be set up before it listens on its port")
        await self.listen(runner.server, host, port)

    def stop(self) -> None:
        """Stop listening. Open connections are not closed."""
        self._stop_accepting()
        for timer in (self._resuming, self._asking):
            if timer is not None:
                timer.cancel()
        for listener in self._listening:
            listener.close()
        self._listening = []

    async def close(self) -> None:
        """Stop listening and shut down all open connections."""
        self.stop()
        for opening in self._openings:
            opening.cancel()
        for connection in list(self._open.values()):
            connection.shut_down()
        if self._open:
            with suppress(TimeoutError):
                async with timeouts.within(2 * CLOSING_SECONDS):
                    await self._all_closed.wait()

    @contextmanager
    def serving(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """Record that a request is being served, so that its connection does not count as waiting."""
        connection = self._find(transport)
        if connection is None:
            yield
            return
        connection.serve()
        try:
            yield
        finally:
            if self._is_live(connection):
                self._wait_behind_others(connection)
                connection.wait(self._limits.idle, grace=GRACE_SECONDS)

    @contextmanager
    def receiving(self, transport: asyncio.BaseTransport | None, seconds: float) -> Iterator[None]:
        """Record that a request body is being read, for which the connection waits at most `seconds`.

        Otherwise a client that sends a body byte by byte would count as served, and block other clients.
        """
        connection = self._find(transport)
        if connection is None:
            yield
            return
        self._wait_behind_others(connection)
        connection.wait(seconds)
        try:
            yield
        finally:
            if self._is_live(connection):
                connection.serve()

    def _find(self, transport: asyncio.BaseTransport | None) -> "_Connection | None":
        sock = transport.get_extra_info("socket") if transport is not None else None
        return self._open.get(sock.fileno()) if sock is not None else None

    def _is_live(self, connection: "_Connection") -> bool:
        return self._open.get(connection.number) is connection and not connection.is_shut_down

    def _wait_behind_others(self, connection: "_Connection") -> None:
        self._open[connection.number] = self._open.pop(connection.number)

    @property
    def middleware(self) -> Middleware:
        """Return middleware that records when requests of an application are served."""

        @web.middleware
        async def noted(request: web.Request, handler: Handler) -> web.StreamResponse:
            with self.serving(request.transport):
                return await handler(request)

        return noted

    def _accept(self, listening: socket.socket) -> None:
        for attempt in range(AT_ONCE):
            if len(self._open) >= self._limits.connections:
                if attempt == 0:  # the event loop has reported a ready connection
                    self._free_connection()
                return
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self._open_connection(accepted)

    def _free_connection(self) -> None:
        """Stop accepting connections until one is closed.

        Close the longest waiting connection, immediately or soon.
        """
        self._stop_accepting()
        loop = asyncio.get_running_loop()
        if not any(connection.is_shut_down for connection in self._open.values()):
            idle = next((connection for connection in self._open.values() if connection.is_idle(loop.time())), None)
            if idle is not None:
                idle.shut_down()
                return
        if self._asking is None:
            self._asking = loop.call_later(GRACE_SECONDS, self._retry_accept)

    def _retry_accept(self) -> None:
        self._asking = None
        if len(self._open) >= self._limits.connections:
            self._free_connection()

    def _open_connection(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        number = accepted.fileno()
        peer = AcceptedConnection(accepted, lambda: self._handle_closed(number))
        connection = self._open[number] = _Connection(peer, number)
        self._all_closed.clear()
        connection.wait(self._limits.headers)
        opening = asyncio.get_running_loop().create_task(self._serve(peer, connection), name=f"accept {self._name}")
        self._openings.add(opening)
        opening.add_done_callback(self._openings.discard)

    async def _serve(self, peer: socket.socket, connection: "_Connection") -> None:
        """Perform the TLS handshake and pass the connection to a protocol."""
        handshake = min(HANDSHAKE_SECONDS, self._limits.headers) if self._context is not None else None
        try:
            connection.transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                self._factory, peer, ssl=self._context, ssl_handshake_timeout=handshake
            )
        except (OSError, ValueError) as error:  # a failed handshake affects only its client
            log.debug("connection closed", server=self._name, error=str(error))
            connection.shut_down()

    def _handle_closed(self, number: int) -> None:
        connection = self._open.pop(number, None)
        if connection is not None:
            connection.cancel_timeout()
        if not self._open:
            self._all_closed.set()
        if self._resuming is None:
            self._accept_again()

    def _pause(self, error: OSError) -> None:
        """Pause accepting connections, because the system has no file descriptor or memory for a connection."""
        self._stop_accepting()
        loop = asyncio.get_running_loop()
        self._resuming = loop.call_later(PAUSE_SECONDS, self._resume)
        self._unlogged += 1
        if loop.time() >= self._logged_at + LOG_SECONDS:
            log.warning(
                "cannot accept connections. Increase the limit of open files (ulimit -n)",
                server=self._name,
                error=error.strerror,
                times=self._unlogged,
                connections=len(self._open),
            )
            self._logged_at, self._unlogged = loop.time(), 0

    def _resume(self) -> None:
        self._resuming = None
        self._accept_again()

    def _accept_again(self) -> None:
        if not self._is_accepting and self._listening:
            self._is_accepting = True
            for listener in self._listening:
                self._watch(listener)

    def _watch(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(listener, self._accept, listener)
        except NotImplementedError:  # on Windows
            self._accepting[listener] = loop.create_task(self._accept_each(listener), name=f"accept {self._name}")

    def _unwatch(self, listener: socket.socket) -> None:
        if task := self._accepting.pop(listener, None):
            task.cancel()
        else:
            asyncio.get_running_loop().remove_reader(listener)

    async def _accept_each(self, listener: socket.socket) -> None:
        """Accept connections on event loops that cannot watch a socket. Connections above the limit are closed."""
        while True:
            try:
                accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError as error:
                return self._pause(error)
            if len(self._open) < self._limits.connections:
                self._open_connection(accepted)
            else:
                accepted.close()

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            for listener in self._listening:
                self._unwatch(listener)


class _Connection:
    """The state of a connection, which includes whether it is waiting, and its deadline."""

    def __init__(self, peer: socket.socket, number: int) -> None:
        self._peer = peer
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None
        self.number = number
        self.is_waiting = True
        self.is_shut_down = False
        self._idle_at = 0.0

    def is_idle(self, now: float) -> bool:
        """Return whether the connection is waiting, and its last response has been sent."""
        return self.is_waiting and now >= self._idle_at

    def wait(self, seconds: float, *, grace: float = 0.0) -> None:
        """Start waiting for a request, for at most `seconds`."""
        loop = asyncio.get_running_loop()
        self.is_waiting = True
        self._idle_at = loop.time() + grace
        self._timer = loop.call_later(seconds, self.shut_down)

    def serve(self) -> None:
        """Stop waiting, because a request is being served."""
        self.is_waiting = False
        self.cancel_timeout()

    def cancel_timeout(self) -> None:
        """Cancel the time limit."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def shut_down(self) -> None:
        """Shut down the connection in the kernel, so that all readers and writers stop, even during a handshake."""
        self.is_shut_down = True
        self.cancel_timeout()
        self._timer = asyncio.get_running_loop().call_later(CLOSING_SECONDS, self._abort)
        with suppress(OSError):  # the client has already closed it
            self._peer.shutdown(socket.SHUT_RDWR)

    def _abort(self) -> None:
        """Abort a connection that has not read or written data since its shutdown."""
        if self.transport is not None and self._peer.fileno() >= 0:
            abort(self.transport)
