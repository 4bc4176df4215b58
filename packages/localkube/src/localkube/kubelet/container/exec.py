"""Runs user commands in containers (`/exec`), with pipes or with a terminal."""

import asyncio
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from localkube.kubelet.processes.runner import Exit, ProcessRunner

END_OF_INPUT: Final = b"\x04"
"""The character that closes the input of a terminal."""


class Output(Struct, frozen=True):
    """One output stream of a command, with its pipe or terminal."""

    reader: asyncio.StreamReader
    transport: asyncio.ReadTransport


class ContainerExec:
    """One command in a container. Implements `localkube.podaccess.ExecSession`."""

    def __init__(self, runner: ProcessRunner, stdout: Output, stderr: Output | None) -> None:
        self.stdout = stdout.reader
        self.stderr = stderr.reader if stderr else None
        self._outputs = [output.transport for output in (stdout, stderr) if output]
        self._runner = runner
        self._exited: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._input: asyncio.StreamWriter | None = None
        self._terminal: int | None = None
        self._pid: int | None = None

    async def begin(self, container_id: str, argv: tuple[str, ...], descriptors: tuple[int, int, int]) -> None:
        """Start the command with these standard streams."""
        self._pid = await self._runner.exec(container_id, argv, descriptors, self._handle_exit)

    def attach(self, writer: asyncio.StreamWriter | None, terminal: int | None) -> None:
        """Own the input writer of the command, and the terminal, which is closed afterwards."""
        self._input = writer
        self._terminal = terminal

    async def write(self, data: bytes) -> None:
        """Write to the standard input of the command. If the command no longer reads input, drop the data."""
        if self._input is None or self._input.is_closing():
            return
        self._input.write(data)
        try:
            await self._input.drain()
        except ConnectionError:
            self._input.close()

    async def close_stdin(self) -> None:
        """Close the standard input of the command."""
        if self._terminal is not None:
            await self.write(END_OF_INPUT)
        elif self._input is not None:
            self._input.close()

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal."""
        if self._terminal is not None:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def wait(self) -> int:
        """Return the exit code."""
        return (await asyncio.shield(self._exited)).code

    async def kill(self) -> None:
        """Kill the command and all processes that it started, and stop reading."""
        if self._pid is not None and not self._exited.done():
            await self._runner.kill_exec(self._pid)
        self._release()
        for output in self._outputs:
            output.close()

    def _handle_exit(self, ending: Exit) -> None:
        self._exited.set_result(ending)
        self._release()

    def _release(self) -> None:
        if self._input is not None:
            self._input.close()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None


class _TerminalReader(asyncio.StreamReaderProtocol):
    """Treats the error of a terminal whose other side is closed as the end of its output."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None if isinstance(exc, OSError) else exc)


async def start(
    runner: ProcessRunner, container_id: str, argv: tuple[str, ...], *, stdin: bool, tty: bool
) -> ContainerExec:
    """Start a command in a running container. Raise `StartError` if it cannot be started."""
    return await (_start_terminal if tty else _start_pipes)(runner, container_id, argv, stdin)


async def _start_pipes(runner: ProcessRunner, container_id: str, argv: tuple[str, ...], stdin: bool) -> ContainerExec:  # noqa: FBT001
    out_reader, out_writer = os.pipe2(os.O_CLOEXEC)
    err_reader, err_writer = os.pipe2(os.O_CLOEXEC)
    in_reader, in_writer = os.pipe2(os.O_CLOEXEC) if stdin else (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), None)
    session = ContainerExec(runner, await _output(out_reader), await _output(err_reader))
    session.attach(None if in_writer is None else await _writer(in_writer), None)
    await _begin(session, container_id, argv, (in_reader, out_writer, err_writer))
    return session


async def _start_terminal(
    runner: ProcessRunner,
    container_id: str,
    argv: tuple[str, ...],
    stdin: bool,  # noqa: FBT001
) -> ContainerExec:
    master, slave = os.openpty()
    session = ContainerExec(runner, await _output(os.dup(master)), None)
    session.attach(await _writer(os.dup(master)) if stdin else None, master)
    await _begin(session, container_id, argv, (slave, slave, slave))
    return session


async def _begin(
    session: ContainerExec, container_id: str, argv: tuple[str, ...], descriptors: tuple[int, int, int]
) -> None:
    try:
        await session.begin(container_id, argv, descriptors)
    except BaseException:  # the command was not started, so close its open descriptors
        await session.kill()
        raise
    finally:
        for descriptor in set(descriptors):
            os.close(descriptor)


async def _output(descriptor: int) -> Output:
    reader = asyncio.StreamReader()
    protocol: Callable[[], asyncio.StreamReaderProtocol] = lambda: _TerminalReader(reader)  # noqa: E731
    file = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(protocol, file)
    return Output(reader, transport)


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    file = os.fdopen(descriptor, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop), file)
    return asyncio.StreamWriter(transport, protocol, None, loop)
