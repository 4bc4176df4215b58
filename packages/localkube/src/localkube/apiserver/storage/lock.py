"""Allows one process per file, with an advisory lock that the kernel releases when its owner exits."""

import fcntl
import os
from pathlib import Path
from typing import Final

from localkube.apiserver.storage.storeerrors import StoreError

LONGEST_PID: Final = 20


class FileLock:
    """Locks a file against other processes. Raises a `StoreError` immediately if another process has the lock."""

    def __init__(self, path: str) -> None:
        beside = Path(f"{path}.lock")
        try:
            self._descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{beside}: {error.strerror}. Use a writable directory") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(self._descriptor, LONGEST_PID).decode(errors="replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StoreError(f"{path}: in use by process {holder}. Stop it, or use a different file") from error
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        """Release the lock unless it is already released."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
