"""Defines errors of the store: rejected reads and writes, and file errors for the user of the cluster.

```
CompactedError      a revision that is no longer retained
ExistsError         an object that exists already
StaleError          a write for a revision that is no longer the current one
TooLargeError       an object that is too large
StoreError          the file cannot be used; the text names it and says what to do
└── DamagedError    it is damaged, or not a store; it was not changed
```
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from localkube.errors import LocalkubeError

INTACT: Final = "Stored objects are intact"
ADVICE: Final = {
    sqlite3.SQLITE_FULL: f"Free disk space. {INTACT}",
    sqlite3.SQLITE_IOERR: f"Check the disk and its free space. {INTACT}",
    sqlite3.SQLITE_BUSY: "Close the process that uses the file",
    sqlite3.SQLITE_LOCKED: "Close the process that uses the file",
    sqlite3.SQLITE_READONLY: "Make the file and its directory writable",
    sqlite3.SQLITE_CANTOPEN: "Make sure that its directory exists and is writable",
    sqlite3.SQLITE_CORRUPT: "The file is damaged. Delete it, or use a different file",
    sqlite3.SQLITE_NOTADB: "The file was not created by the embedded cluster. Delete it, or use a different file",
}
UNKNOWN: Final = "If this persists, use a different file"


class CompactedError(Exception):
    """The requested revision is no longer retained. `oldest` is the oldest retained revision."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"revisions before {oldest} have been compacted")
        self.oldest = oldest


class ExistsError(Exception):
    """An object with this key already exists."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class StaleError(Exception):
    """The object has changed since the revision on which the write is based."""


class TooLargeError(Exception):
    """The object exceeds the size limit of etcd. It was not written."""

    def __init__(self) -> None:
        super().__init__("etcdserver: request is too large")


class StoreError(LocalkubeError):
    """The file cannot be used.

    The message contains the file and the solution. If `transient` is set, a retry can help.

    If the disk `is_full`, objects can still be deleted.
    """

    def __init__(self, message: str, *, transient: bool = False, is_full: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        self.is_full = is_full


class DamagedError(StoreError):
    """The file is damaged or is not a store. It was not changed."""


def store_error(path: str, error: sqlite3.Error) -> StoreError:
    """Convert a SQLite error to a `StoreError` for the cluster's user."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    transient = code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    is_full = code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
    return StoreError(f"{path}: {error}. {ADVICE.get(code, UNKNOWN)}", transient=transient, is_full=is_full)


def disk_full_error(path: str) -> StoreError:
    """Return the error for a new object if the disk is full."""
    return StoreError(f"{path}: database or disk is full. Free disk space, or delete objects. {INTACT}")


@contextmanager
def convert_errors(path: str | Path) -> Iterator[None]:
    """Convert SQLite errors and OS errors in the context to `StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(str(path), error) from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}. Make the directory writable") from error
