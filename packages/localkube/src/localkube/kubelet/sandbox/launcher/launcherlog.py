"""Writes the standard error of the launcher to a file with a limited size.

The launcher must not wait for a reader, so it bounds the file itself: a full file keeps its newer half. The file is
open for appending and reading; programs of pods never have it.
"""

import io
import os
from contextlib import suppress
from typing import Final

LIMIT: Final = 1024 * 1024
"""The size in bytes at which the older half is dropped."""


class BoundedLog(io.TextIOBase):
    """A text stream that writes to a descriptor immediately, and drops data that cannot be written."""

    def __init__(self, descriptor: int, limit: int = LIMIT) -> None:
        self._descriptor = descriptor
        self._limit = limit

    def write(self, text: str) -> int:
        """Write the string, or the end of a very long string."""
        with suppress(OSError):
            self._make_space()
            os.write(self._descriptor, text.encode(errors="backslashreplace")[-self._limit // 2 :])
        return len(text)

    def writable(self) -> bool:
        """Return True, because the stream is writable."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def _make_space(self) -> None:
        size = os.fstat(self._descriptor).st_size
        if size < self._limit:
            return
        newer = os.pread(self._descriptor, self._limit // 2, size - self._limit // 2)
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, newer)
