"""Reserves disk space for a store. It is released when the disk is full, so that objects can be deleted.

`Store` holds the reserve while it is open. If a write fails because the disk is full, the reserve is released. Then new
objects are rejected until the disk has enough space for the reserve again. If the disk is too small at the start, there
is no reserve.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

SIZE: Final = 8 * 2**20
"""The size of the reserve in bytes, for the write-ahead log and hundreds of deletions."""


class DiskReserve:
    """The reserved disk space next to a file. Without a path, there is no reserve."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._is_held = False
        self._is_freed = False

    def has_room(self) -> bool:
        """Return whether new objects can be stored. If the reserve is not allocated, try to allocate it."""
        if self._path is None or self._is_held:
            return True
        try:
            self._allocate(self._path)
        except OSError:
            self._remove()
            return not self._is_freed
        return True

    def free(self) -> None:
        """Release the reserve to the file system, for updates and deletions."""
        if self._is_held:
            self._is_freed = True
        self.release()

    def release(self) -> None:
        """Remove the reserve."""
        self._is_held = False
        self._remove()

    def _allocate(self, path: Path) -> None:
        disk = os.statvfs(path.parent)
        if not path.exists() and disk.f_bavail * disk.f_frsize < 2 * SIZE:
            raise OSError("not enough disk space")
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)  # independent of the umask
            os.posix_fallocate(descriptor, 0, SIZE)
        finally:
            os.close(descriptor)
        self._is_held, self._is_freed = True, False

    def _remove(self) -> None:
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
