"""Implements the cluster process's end of the launcher connection, with requests on the event loop.

In: requests with descriptors. Out: the response to each, and events (ends of processes) to a callback, both in the
order in which the launcher sent them: the callback for an end runs after the task that awaited the start has continued.
"""

import asyncio
import itertools
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

from localkube.kubelet.processes.runner import ExhaustedError, StartError
from localkube.kubelet.sandbox.launcher.launcherconnection import (
    ConnectionClosedError,
    LauncherConnection,
    Message,
    ReceivedMessage,
    close_all,
    encode,
)

AT_ONCE: Final = 64
"""The number of responses per loop iteration. The kernel returns responses with descriptors one by one."""


class LauncherEndedError(StartError):
    """The launcher and all processes of all pods have exited."""


class LauncherClient:
    """The connection to one launcher."""

    def __init__(
        self, link: LauncherConnection, on_event: Callable[[Message], None], on_closed: Callable[[], None]
    ) -> None:
        self._link = link
        self._on_event = on_event
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[ReceivedMessage]] = {}
        self._outgoing: deque[tuple[bytes, list[int]]] = deque()
        self.closed = False
        link.sock.setblocking(False)
        self._loop.add_reader(link.fileno(), self._read)

    async def request(self, op: str, fields: Message, fds: tuple[int, ...] = ()) -> ReceivedMessage:
        """Send a request, and return its response with descriptors. Raise `StartError` if it is rejected."""
        if self.closed:
            raise LauncherEndedError("the launcher of the pods has exited")
        number = next(self._numbers)
        copies = _duplicate(fds)
        future: asyncio.Future[ReceivedMessage] = self._loop.create_future()
        self._waiting[number] = future
        self._send(encode({"id": number, "op": op} | fields, len(fds)), copies)
        response = await future
        if "error" in response.message:
            kind = ExhaustedError if response.message.get("exhausted") else StartError
            raise kind(response.message["error"])
        return response

    def close(self) -> None:
        """Close the connection, which stops the launcher and all its processes.

        Pending requests raise `LauncherEndedError`.
        """
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._link.fileno())
        self._loop.remove_writer(self._link.fileno())
        self._link.close()
        for _, fds in self._outgoing:
            close_all(fds)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(LauncherEndedError("the launcher of the pods exited during a request"))
        self._waiting.clear()
        self._on_closed()

    def _send(self, frame: bytes, fds: list[int]) -> None:
        self._outgoing.append((frame, fds))
        if len(self._outgoing) == 1:
            self._write()

    def _write(self) -> None:
        try:
            while self._outgoing:
                frame, fds = self._outgoing.popleft()
                try:
                    sent = socket.send_fds(self._link.sock, [frame], fds) if fds else self._link.sock.send(frame)
                except BlockingIOError:
                    self._outgoing.appendleft((frame, fds))
                    break
                close_all(fds)
                if sent < len(frame):
                    self._outgoing.appendleft((frame[sent:], []))
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            return
        if self._outgoing:
            self._loop.add_writer(self._link.fileno(), self._write)
        else:
            self._loop.remove_writer(self._link.fileno())

    def _read(self) -> None:
        try:
            for _ in range(AT_ONCE):
                for received in self._link.receive():
                    self._dispatch(received)
        except BlockingIOError:
            return
        except ConnectionClosedError:
            self.close()

    def _dispatch(self, received: ReceivedMessage) -> None:
        number = received.message.get("reply")
        if number is None:
            self._loop.call_soon(self._on_event, received.message)
            return
        future = self._waiting.pop(number, None)
        if future is None or future.done():  # the request was canceled
            close_all(received.fds)
        elif received.has_lost_descriptors:
            future.set_exception(StartError("too many open files: a descriptor from the launcher was lost"))
        else:
            future.set_result(received)


def _duplicate(fds: tuple[int, ...]) -> list[int]:
    """Duplicate all descriptors, because their owner might close them earlier. On failure, close all of them."""
    copies: list[int] = []
    try:
        for fd in fds:
            copies.append(os.dup(fd))  # noqa: PERF401 - those made before a failure are closed
    except OSError as error:
        close_all(copies)
        raise StartError(f"cannot pass descriptors to the launcher: {error.strerror}") from error
    return copies
