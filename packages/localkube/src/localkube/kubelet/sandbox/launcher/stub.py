"""Implements the built-in server that replaces a container which cannot run.

It responds with 200 on its ports, and logs requests.

It runs in the launcher's fork itself, without exec, so that hundreds of them cost little. It exits with code 0 on
SIGTERM.
"""

import os
import select
import signal
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import ssl

_HANDSHAKE = b"\x16"
"""The first byte that a TLS client sends."""

_LONGEST_HEAD = 1 << 16
_BODY = b"stub\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
    len(_BODY),
    _BODY,
)
_HEAD_ANSWER = _ANSWER[: -len(_BODY)]


def read_request_line(head: bytes) -> str | None:
    r"""Return the first line of a request with a complete head, or None if the head is incomplete.

    >>> read_request_line(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
    'GET /health HTTP/1.1'
    """
    if b"\r\n\r\n" not in head and b"\n\n" not in head:
        return None
    return head.split(b"\n", 1)[0].strip().decode("utf-8", "backslashreplace")


def response_to(request_line: str) -> bytes:
    """Return the response to a request."""
    return _HEAD_ANSWER if request_line.startswith("HEAD ") else _ANSWER


def serve(listened: tuple[str, list[int]], identity: bytes, output: int, errors: int) -> NoReturn:
    """Serve on the ports of an address until SIGTERM.

    Ports that are in use end it with an error, as they would end the real program. `identity` is the key and the
    certificate, as PEM, for clients that begin with TLS.
    """
    address, ports = listened
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as PID 1, because the kernel then reaps orphaned commands
    server = _Server(output, identity)
    for port in ports:
        try:
            server.listen(address, port)
        except OSError as error:
            os.write(errors, f"stub: cannot listen on port {port}: {error.strerror}\n".encode())
            os._exit(1)
    numbers = ", ".join(map(str, ports))
    server.log(
        f"stub: serving status 200 on port{'s' * (len(ports) > 1)} {numbers}"
        if ports
        else "stub: running without ports"
    )
    server.run()


def _end(*_: object) -> None:
    os._exit(0)


class _Server:
    def __init__(self, output: int, identity: bytes) -> None:
        self._output = output
        self._identity = identity
        self._poll = select.poll()
        self._listeners: dict[int, socket.socket] = {}
        self._connections: dict[int, _Connection] = {}
        self._tls: ssl.SSLContext | None = None

    def log(self, line: str) -> None:
        """Write a line to standard output. Ignore the error if it is closed."""
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(self._output, f"{line}\n".encode())

    def listen(self, address: str, port: int) -> None:
        """Accept connections on a port."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        listener.setblocking(False)
        self._listeners[listener.fileno()] = listener
        self._poll.register(listener, select.POLLIN)

    def run(self) -> NoReturn:
        """Serve requests until the process exits."""
        while True:
            for fd, _ in self._poll.poll():
                try:
                    if fd in self._listeners:
                        self._accept(self._listeners[fd])
                    else:
                        self._read(fd)
                except OSError as error:
                    if fd in self._connections:  # regardless of client errors, such as a disconnect before the response
                        self._drop(fd)
                    elif not isinstance(error, ConnectionError | BlockingIOError):
                        raise

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.setblocking(False)
        self._connections[connection.fileno()] = _Connection(connection)
        self._poll.register(connection, select.POLLIN)

    def _read(self, fd: int) -> None:
        connection = self._connections[fd]
        data = connection.socket.recv(_LONGEST_HEAD)
        if data[:1] == _HANDSHAKE and not connection.head and connection.session is None:
            connection.session = _Session(self._tls_context())
        connection.head += data if connection.session is None else connection.session.decrypt(data)
        line = read_request_line(bytes(connection.head))
        response = b"" if line is None else response_to(line)
        if output := response if connection.session is None else connection.session.encrypt(response):
            connection.socket.send(output)
        if line is not None:
            connection.socket.shutdown(socket.SHUT_WR)
            port = connection.socket.getsockname()[1]
            self.log(f"stub: {line.rpartition(' ')[0] or line} 200 on port {port}")
        if line is not None or not data or len(connection.head) > _LONGEST_HEAD:
            self._drop(fd)

    def _tls_context(self) -> "ssl.SSLContext":
        if self._tls is None:
            self._tls = _context_of(self._identity)
        return self._tls

    def _drop(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._connections.pop(fd).socket.close()


class _Connection:
    """A client, with its socket, its received data, and its TLS session if it started with a handshake."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.head = bytearray()
        self.session: _Session | None = None


class _Session:
    """The TLS layer of one connection, which converts bytes. Protocol errors are OSErrors, as in `ssl`."""

    def __init__(self, context: "ssl.SSLContext") -> None:
        import ssl

        self._input, self._output = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._input, self._output, server_side=True)
        self._awaits: tuple[type[ssl.SSLError], ...] = (ssl.SSLWantReadError,)

    def decrypt(self, data: bytes) -> bytes:
        """Return the data that the client has sent through TLS, which is empty during the handshake."""
        self._input.write(data)
        try:
            self._ssl.do_handshake()
            return self._ssl.read(_LONGEST_HEAD)
        except self._awaits:
            return b""

    def encrypt(self, response: bytes) -> bytes:
        """Return the data to send: the server's part of the handshake, and the response."""
        if response:
            self._ssl.write(response)
        return self._output.read()


def _context_of(identity: bytes) -> "ssl.SSLContext":
    """Return the TLS context of a server. `ssl` needs 2 MiB, and is imported only for TLS clients."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    descriptor = os.memfd_create("identity")
    os.write(descriptor, identity)
    context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    os.close(descriptor)
    return context
