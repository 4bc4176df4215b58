"""Runs a command in a container to completion, for exec probes and hooks."""

import asyncio
import os
from functools import partial
from typing import Final

from localkube.kubelet.processes.runner import Exit, ProcessRunner

LONGEST_OUTPUT: Final = 10 * 1024
"""The number of retained output bytes. Additional output is discarded."""


async def run(runner: ProcessRunner, container_id: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
    """Run a command in a running container, and return its exit code and output. If cancelled, kill the command."""
    loop = asyncio.get_running_loop()
    exited: asyncio.Future[Exit] = loop.create_future()
    reader, writer = os.pipe2(os.O_CLOEXEC)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pid = await runner.exec(container_id, argv, (nothing, writer, writer), partial(_report_exit, exited))
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(nothing)
        os.close(writer)
    output = _Output(reader)
    try:
        ending = await exited
    except asyncio.CancelledError:
        await runner.kill_exec(pid)
        raise
    finally:
        output.close()
    return ending.code, bytes(output.kept)


def _report_exit(exited: asyncio.Future[Exit], ending: Exit) -> None:
    """Report the exit to the caller, unless the caller no longer waits."""
    if not exited.done():
        exited.set_result(ending)


class _Output:
    def __init__(self, descriptor: int) -> None:
        self.kept = bytearray()
        self._descriptor = descriptor
        os.set_blocking(descriptor, False)
        asyncio.get_running_loop().add_reader(descriptor, self._read_chunk)

    def close(self) -> None:
        """Read the remaining output and close the pipe."""
        while self._read_chunk():
            pass
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _read_chunk(self) -> bool:
        try:
            data = os.read(self._descriptor, LONGEST_OUTPUT)
        except BlockingIOError:
            return False
        self.kept += data[: LONGEST_OUTPUT - len(self.kept)]
        if not data:
            asyncio.get_running_loop().remove_reader(self._descriptor)
        return bool(data)
