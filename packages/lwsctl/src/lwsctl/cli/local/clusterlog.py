"""The log of a detached cluster: standard error of its process, in a file of limited size.

When the file is full it becomes the older log and replaces the previous one, and a new file is begun; so both together
stay below twice `LIMIT`. If no new file can be created (a full disk), further output is dropped.
"""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import BinaryIO, Final

from lwsctl.cli.cluster.clusterdirectories import ClusterDirectory

LIMIT: Final = 8 * 2**20
"""The bytes of the current log at which it becomes the older one."""

LONGEST: Final = 64 * 2**10
"""The maximum characters of one event; longer ones are truncated."""

STANDARD_STREAMS: Final = (1, 2)


def bound(place: ClusterDirectory) -> None:
    """Limit the log of this process, if standard error is the log of the cluster."""
    if is_log(place, sys.stderr.fileno()):
        sys.stderr = BoundedLog(place)


def opened(place: ClusterDirectory) -> BinaryIO:
    """Open the log of a cluster for its process; only its user may read it."""
    from localkube.cluster import open_private

    return open_private(place.log)


def is_log(place: ClusterDirectory, descriptor: int) -> bool:
    """Return whether a descriptor of this process writes to the log of the cluster."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), place.log.stat())
    return False


class BoundedLog(TextIOWrapper):
    """Standard error, written to the log of a cluster."""

    def __init__(self, place: ClusterDirectory, limit: int = LIMIT) -> None:
        buffer = os.fdopen(2, "wb", closefd=False)
        super().__init__(buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._place = place
        self._limit = limit

    def write(self, text: str, /) -> int:
        """Write the text, truncated if it is very long; drop it if the log is full and cannot be replaced."""
        if os.fstat(2).st_size < self._limit or self._rotate():
            super().write(text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)\n")
        return len(text)

    def _rotate(self) -> bool:
        """Make the log the older one, and begin another; return whether that was possible."""
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
