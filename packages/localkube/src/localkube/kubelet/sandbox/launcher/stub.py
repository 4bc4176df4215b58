"""The built-in server that replaces a container which cannot run here: it answers 200 on its ports, and logs.

It runs in the launcher's fork itself, without exec, so that hundreds of them cost little. It exits with code 0 on
SIGTERM.
"""

import os
import select
import signal
import socket
from typing import NoReturn

_LONGEST_HEAD = 1 << 16
_BODY = b"stub\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
    len(_BODY),
    _BODY,
)
_HEAD_ANSWER = _ANSWER[: -len(_BODY)]


def read_request_line(head: bytes) -> str | None:
    r"""Return the first line of a request whose head is complete, else None.

    >>> read_request_line(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
    'GET /health HTTP/1.1'
    """
    if b"\r\n\r\n" not in head and b"\n\n" not in head:
        return None
    return head.split(b"\n", 1)[0].strip().decode("utf-8", "backslashreplace")


def answer_to(request_line: str) -> bytes:
    """Return the response to a request."""
    return _HEAD_ANSWER if request_line.startswith("HEAD ") else _ANSWER


def serve(address: str, ports: list[int], output: int, errors: int) -> NoReturn:
    """Serve until SIGTERM. Ports that are in use end it with an error, as they would end the real program."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as PID 1: the kernel reaps orphans of commands that run here
    server = _Server(output)
    for port in ports:
        try:
            server.listen(address, port)
        except OSError as error:
            os.write(errors, f"stub: cannot listen on port {port}: {error.strerror}\n".encode())
            os._exit(1)
    numbers = ", ".join(map(str, ports))
    server.log(f"stub: answering 200 on port{'s' * (len(ports) > 1)} {numbers}" if ports else "stub: waiting, no ports")
    server.run()


def _end(*_: object) -> None:
    os._exit(0)


class _Server:
    def __init__(self, output: int) -> None:
        self._output = output
        self._poll = select.poll()
        self._listeners: dict[int, socket.socket] = {}
        self._connections: dict[int, tuple[socket.socket, bytearray]] = {}

    def log(self, line: str) -> None:
        """Write a line to standard output; ignore the error if it is closed."""
        try:
            os.write(self._output, f"{line}\n".encode())
        except (BrokenPipeError, BlockingIOError):
            return

    def listen(self, address: str, port: int) -> None:
        """Accept connections to a port."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        listener.setblocking(False)
        self._listeners[listener.fileno()] = listener
        self._poll.register(listener, select.POLLIN)

    def run(self) -> NoReturn:
        """Serve requests forever."""
        while True:
            for fd, _ in self._poll.poll():
                try:
                    if fd in self._listeners:
                        self._accept(self._listeners[fd])
                    else:
                        self._read(fd)
                except OSError as error:
                    if fd in self._connections:  # whatever its client did, as to leave before the answer
                        self._drop(fd)
                    elif not isinstance(error, ConnectionError | BlockingIOError):
                        raise

    def _accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.setblocking(False)
        self._connections[connection.fileno()] = (connection, bytearray())
        self._poll.register(connection, select.POLLIN)

    def _read(self, fd: int) -> None:
        connection, head = self._connections[fd]
        data = connection.recv(_LONGEST_HEAD)
        head += data
        line = read_request_line(bytes(head))
        if line is not None:
            port = connection.getsockname()[1]
            connection.send(answer_to(line))
            connection.shutdown(socket.SHUT_WR)
            self.log(f"stub: {line.rpartition(' ')[0] or line} 200 on port {port}")
        if line is not None or not data or len(head) > _LONGEST_HEAD:
            self._drop(fd)

    def _drop(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._connections.pop(fd)[0].close()
