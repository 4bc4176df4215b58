"""Manages the log of a detached cluster, which contains the stderr of its process. The file size is limited.

If the file is full, it becomes the previous log, and a new file is created. Therefore, the total size is less than
twice `LIMIT`. If a new file cannot be created, for example on a full disk, further output is dropped.
"""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import BinaryIO, Final

from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory

LIMIT: Final = 8 * 2**20
"""The size in bytes at which the log is rotated."""

LONGEST: Final = 64 * 2**10
"""The maximum number of characters of an event. Longer events are truncated."""

STANDARD_STREAMS: Final = (1, 2)


def limit_log(place: ClusterDirectory) -> None:
    """Limit the log size of this process if its stderr is the cluster log."""
    if is_log(place, sys.stderr.fileno()):
        sys.stderr = BoundedLog(place)


def open_log(place: ClusterDirectory) -> BinaryIO:
    """Open the cluster log for the cluster process. Only the user can read the file."""
    from localkube.cluster import open_private

    return open_private(place.log)


def is_log(place: ClusterDirectory, descriptor: int) -> bool:
    """Return whether a file descriptor of this process writes to the cluster log."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), place.log.stat())
    return False


class BoundedLog(TextIOWrapper):
    """A stderr stream that writes to the cluster log."""

    def __init__(self, place: ClusterDirectory, limit: int = LIMIT) -> None:
        buffer = os.fdopen(2, "wb", closefd=False)
        super().__init__(buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._place = place
        self._limit = limit

    def write(self, text: str, /) -> int:
        """Write the string.

        Long strings are truncated. If the log is full and cannot be rotated, the string is dropped.
        """
        if os.fstat(2).st_size < self._limit or self._rotate():
            super().write(text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)\n")
        return len(text)

    def _rotate(self) -> bool:
        """Rotate the log. Return whether this succeeded."""
        fresh = self._place.log.with_suffix(".new")
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError:
            return False
        own = [number for number in STANDARD_STREAMS if is_log(self._place, number)]
        with suppress(OSError):
            self._place.log.replace(self._place.older_log)
            fresh.replace(self._place.log)
            for number in own:
                os.dup2(descriptor, number)
        os.close(descriptor)
        return os.fstat(2).st_size < self._limit
