"""Provides clients that do not send the complete body, and event loops with a clock that tests control.

Sockets and threads continue, so a test can check a time limit on any machine: the operation ends once the clock is
moved by the limit, and never with a longer limit.
"""

import asyncio
import socket
import ssl
from contextlib import suppress
from typing import Final, Self

LIMIT: Final = 20.0
"""The real time in seconds until an awaited condition must be met."""

POLL: Final = 0.01
TURNS: Final = 20
"""The number of loop iterations after which a completed request waits for the rest of its body."""


class StoppedLoop:
    """Stops the clock of a loop, which may run in another thread, for the duration of the `with` block."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._now = loop.time()
        self._goes_on = loop.time

    def __enter__(self) -> Self:
        self._loop.time = lambda: self._now  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.time = self._goes_on  # type: ignore[method-assign]
        self._wake()

    async def move(self, seconds: float) -> None:
        """Advance the clock when all other work waits for time, and run due timers."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_run_once(), self._loop))
        self._now += seconds
        self._wake()

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(lambda: None)


class UnfinishedRequest:
    """A blocking connection that sends only the first byte of the request body. It needs a separate thread."""

    def __init__(self, port: int, head: str, context: ssl.SSLContext | None = None) -> None:
        plain = socket.create_connection(("127.0.0.1", port), LIMIT)
        self._socket = context.wrap_socket(plain, server_hostname="127.0.0.1") if context is not None else plain
        self._socket.sendall(f"{head}\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 100\r\n\r\n{{".encode())
        self.status = int(self._socket.recv(4096).split()[1])

    def read_to_end(self) -> bool:
        """Return whether the server closes the connection. It may reset the connection."""
        try:
            with suppress(ConnectionResetError, ssl.SSLEOFError):
                while self._socket.recv(4096):
                    continue
        except TimeoutError:
            return False
        return True

    def leave(self) -> None:
        """Close the connection."""
        self._socket.close()


async def tasks_end(loop: asyncio.AbstractEventLoop, count: int) -> bool:
    """Wait until a loop has at most `count` tasks, and return whether this happened."""
    for _ in range(int(LIMIT / POLL)):
        if len(asyncio.all_tasks(loop)) <= count:
            return True
        await asyncio.sleep(POLL)
    return False


async def _run_once() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
