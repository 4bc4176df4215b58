"""The files of the store: their names, and their atomic replacement."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def beside(path: Path, suffix: str) -> Path:
    """Return the path of a file that belongs to another.

    >>> beside(Path("/state/state.db"), "-wal")
    PosixPath('/state/state.db-wal')
    """
    return path.with_name(path.name + suffix)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Create a file (mode 0600) under a temporary name; it is renamed when the context ends without an error."""
    fresh = beside(path, ".new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask
        yield fresh
        os.fsync(descriptor)
        fresh.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            fresh.unlink()
        raise
    finally:
        os.close(descriptor)
