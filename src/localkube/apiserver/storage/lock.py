"""Allows one process per file, by an advisory lock that the kernel releases when its owner ends in any way."""

import fcntl
import os
from pathlib import Path

from localkube.apiserver.storage.storeerrors import StoreError


class FileLock:
    """A lock file that contains the process id of its holder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def acquire(self) -> bool:
        """Acquire the lock; return False if another process holds it. Raise `OSError` if the file cannot be created."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._descriptor = descriptor
        return True

    def holder(self) -> str:
        """Return the process id of the holder, "unknown" if it cannot be read."""
        try:
            return self._path.read_text(encoding="ascii").strip() or "unknown"
        except (OSError, UnicodeDecodeError):
            return "unknown"

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def hold(path: str) -> FileLock:
    """Lock a file against other processes; raise `StoreError` at once if one holds it."""
    file = FileLock(Path(f"{path}.lock"))
    try:
        acquired = file.acquire()
    except OSError as error:
        raise StoreError(f"{path}.lock: {error.strerror}: use a directory that can be written to") from error
    if not acquired:
        raise StoreError(f"{path}: in use by process {file.holder()}: stop it, or use another file")
    return file
