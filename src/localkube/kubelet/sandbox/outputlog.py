"""The output of a program of the cluster, in a file of bounded size.

The program writes to a pipe; this process copies the data to the file. A full file is renamed to `FILE.1` and replaces
the previous one, so that both together stay below twice `LIMIT`. Output that cannot be written (a full disk) is
dropped.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from localkube.statedirectory import open_private

LIMIT: Final = 1 * 2**20
"""Bytes of the current file, at which it becomes the older one."""

CHUNK: Final = 64 * 2**10


class OutputLog:
    """The file, and the pipe that leads to it; belongs to one event loop."""

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self.path = path
        self._limit = limit
        self._pipe: int | None = None

    def open(self) -> int:
        """Return a descriptor for the program to write to; the caller closes it once the program has it."""
        self._pipe, theirs = os.pipe()
        os.set_blocking(self._pipe, False)
        asyncio.get_running_loop().add_reader(self._pipe, self._move)
        return theirs

    def close(self) -> None:
        """Copy the remaining output, and close the pipe."""
        while self._pipe is not None and self._move():
            pass
        self._forget()

    def _move(self) -> bool:
        """Copy a part of the output; return whether there was any."""
        if self._pipe is None:
            return False
        try:
            piece = os.read(self._pipe, CHUNK)
        except BlockingIOError:
            return False
        if piece:
            self._append(piece)
        else:
            self._forget()  # all writers have closed the pipe
        return bool(piece)

    def _append(self, piece: bytes) -> None:
        with suppress(OSError), open_private(self.path) as file:
            if os.fstat(file.fileno()).st_size >= self._limit:
                self.path.replace(self.path.with_name(f"{self.path.name}.1"))
                file.close()
                self._append(piece)
            else:
                file.write(piece)

    def _forget(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            asyncio.get_running_loop().remove_reader(pipe)
            os.close(pipe)
