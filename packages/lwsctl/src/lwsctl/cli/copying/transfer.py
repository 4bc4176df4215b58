"""Streams archives to and from `tar` in a container, without storing a complete archive in memory.

A thread writes or reads the archive, because file operations block. The event loop handles the connection.
"""

import asyncio
import queue
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import IO, Final, TypeVar, cast

from msgspec import Struct

from kuberuntime.client import channels
from kuberuntime.client.channels import Channels
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.copying.archive import ChunkReader
from lwsctl.cli.errors import CommandError

T = TypeVar("T")

PIECE: Final = 32 * 1024
AHEAD: Final = 32
"""The maximum number of chunks that are buffered between the connection and the file system."""

BETWEEN_TRIES: Final = 0.005
"""The delay in seconds before a retry to pass on a chunk, if the file system is slower than the connection."""

TO_END: Final = 2.0
"""The maximum time in seconds to wait for tar to exit after invalid output."""

SAID: Final = 2000
"""The maximum number of stderr bytes to show."""

NOT_STARTED: Final = 127
NOT_THERE: Final = frozenset({126, NOT_STARTED})


class RankContainer(Struct, frozen=True):
    """A container in which commands are executed."""

    session: Session
    pod: JSONObject
    container: str

    def __str__(self) -> str:
        return f"{meta.name(self.pod)} (container {self.container})"

    def open_streams(
        self, arguments: tuple[str, ...], *, with_input: bool = False, has_terminal: bool = False
    ) -> AbstractAsyncContextManager[Channels]:
        """Start a command and open its streams. On a terminal, there is no separate stderr stream."""
        streams = {"stdout": True, "stderr": not has_terminal, "tty": has_terminal, "stdin": with_input}
        path, query = channels.exec_address(self.pod, self.container, arguments, **streams)
        return self.session.channels(path, query, channels.EXEC_PROTOCOL)


class CommandExit(Struct, frozen=True):
    """The exit code and stderr of a command."""

    code: int
    stderr: str


async def discard_output(_: bytes) -> None:
    """Discard the output."""


async def run(rank: RankContainer, arguments: tuple[str, ...]) -> int:
    """Execute a short command. Return its exit code."""
    async with rank.open_streams(arguments) as streams:
        return (await relay_output(rank, streams, discard_output)).code


async def upload(rank: RankContainer, arguments: tuple[str, ...], write: Callable[[IO[bytes]], None]) -> None:
    """Start tar, and send the output of `write` to its stdin."""
    async with rank.open_streams(arguments, with_input=True) as streams:
        sending = StreamWriter(asyncio.get_running_loop(), streams)
        ending = asyncio.create_task(relay_output(rank, streams, discard_output))
        writing = asyncio.create_task(asyncio.to_thread(write, cast("IO[bytes]", sending)))
        try:
            await asyncio.wait({ending, writing}, return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                writing.result()
                await streams.close_stream(channels.STDIN)
            require_success(rank, await ending)
        finally:
            sending.stop()
            ending.cancel()
            # A stopped writer has failed as expected. Its error is retrieved so that it is not logged.
            await asyncio.gather(ending, writing, return_exceptions=True)


async def download(rank: RankContainer, arguments: tuple[str, ...], read: Callable[[IO[bytes]], T]) -> T:
    """Start tar, and pass its output to `read`. Return the result of `read`."""
    pieces: queue.Queue[bytes] = queue.Queue(AHEAD)
    reading = asyncio.create_task(asyncio.to_thread(read, cast("IO[bytes]", ChunkReader(_chunks(pieces)))))

    async def put(piece: bytes) -> None:
        while not reading.done():
            try:
                pieces.put_nowait(piece)
            except queue.Full:
                await asyncio.sleep(BETWEEN_TRIES)
            else:
                return

    try:
        async with rank.open_streams(arguments) as streams:
            ending = asyncio.create_task(relay_output(rank, streams, put))
            try:
                await asyncio.wait({ending, reading}, return_when=asyncio.FIRST_COMPLETED)
                # Data other than an archive may be the error message of tar, which is more helpful.
                if not (await asyncio.wait({ending}, timeout=TO_END if _has_failed(reading) else None))[0]:
                    reading.result()
                end = await ending
            finally:
                ending.cancel()
    finally:
        await put(b"")
        await asyncio.wait({reading})
        unread = reading.exception()  # if tar did not start, report that error instead
    require_success(rank, end)
    if unread is not None:
        raise unread
    return reading.result()


def _has_failed(reading: "asyncio.Task[T]") -> bool:
    return reading.done() and reading.exception() is not None


def _chunks(pieces: "queue.Queue[bytes]") -> Iterator[bytes]:
    while piece := pieces.get():
        yield piece


class StreamWriter:
    """A file object for a writer thread. Each write blocks until the event loop has sent the chunk."""

    def __init__(self, loop: asyncio.AbstractEventLoop, streams: Channels) -> None:
        self._loop = loop
        self._streams = streams
        self._is_stopped = False

    def write(self, data: bytes) -> int:
        """Send bytes, and wait until the connection has accepted them."""
        for at in range(0, len(data), PIECE):
            if self._is_stopped:
                raise CommandError("the container closed the connection before all files were sent")
            piece = self._streams.send(channels.STDIN, bytes(data[at : at + PIECE]))
            asyncio.run_coroutine_threadsafe(piece, self._loop).result()
        return len(data)

    def stop(self) -> None:
        """Close stdin of the command."""
        self._is_stopped = True


async def relay_output(rank: RankContainer, streams: Channels, take: Callable[[bytes], Awaitable[None]]) -> CommandExit:
    """Pass on the output of a command until it exits."""
    stderr = bytearray()
    while piece := await streams.receive():
        channel, data = piece
        if channel == channels.STDOUT:
            await take(data)
        elif channel == channels.STDERR:
            stderr += data[: SAID - len(stderr)]
        elif channel == channels.STATUS:
            try:
                code = channels.exit_code(data)
            except ConnectionFailedError as error:  # the command was not started
                return CommandExit(NOT_STARTED, str(error))
            return CommandExit(code, stderr.decode(errors="replace").strip())
    raise CommandError(f"{rank}: the connection was closed before the command exited")


def require_success(rank: RankContainer, end: CommandExit) -> None:
    """Raise an error if tar failed or is not installed."""
    if end.code in NOT_THERE:
        raise CommandError(
            f"{rank} does not have tar ({end.stderr or f'exit code {end.code}'}); add tar to the image, or use `lws exec -i … -- sh -c 'cat > FILE' < FILE`"
        )
    if end.code:
        raise CommandError(f"{rank}: {end.stderr or f'tar exited with code {end.code}'}")
