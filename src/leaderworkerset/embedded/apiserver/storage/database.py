"""The file under the store: its layout, its lock, and what its faults mean.

In: a path, or ":memory:". Out: an open SQLite database of our layout, or a `StoreError` that names the file and says
what to do about it. A file that is not ours, or damaged, is left as it is.
"""

import sqlite3
from pathlib import Path
from typing import Final

from leaderworkerset.embedded.apiserver.storage.lock import FileLock

FORMAT: Final = 1
"""The layout of the tables, in `PRAGMA user_version`."""

BUSY_TIMEOUT: Final = 0.2
"""Seconds to wait for someone who reads the file with another program; the event loop stands still meanwhile."""

INTACT: Final = "what was stored before is intact"
ADVICE: Final = {
    sqlite3.SQLITE_FULL: f"free space on the disk; {INTACT}",
    sqlite3.SQLITE_IOERR: f"check the disk and its free space; {INTACT}",
    sqlite3.SQLITE_BUSY: "another program holds the file: close it",
    sqlite3.SQLITE_LOCKED: "another program holds the file: close it",
    sqlite3.SQLITE_READONLY: "make the file and its directory writable",
    sqlite3.SQLITE_CANTOPEN: "make sure that its directory exists and can be written to",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: restore a copy, or use another file",
    sqlite3.SQLITE_NOTADB: "this is no file of the embedded cluster: use another, or restore a copy",
}
UNKNOWN_FAULT: Final = "use another file if this persists"

SCHEMA: Final = """
CREATE TABLE objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE history (
  revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  type TEXT NOT NULL, previous INTEGER NOT NULL, value BLOB NOT NULL
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES ('revision', 0), ('compacted', 0);
"""


class StoreError(Exception):
    """The file cannot be used; the text names it and says what to do. `transient`: trying again may help."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


def connect(path: str) -> sqlite3.Connection:
    """Open the file; make its tables where it is new."""
    try:
        database = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None)
    except sqlite3.Error as error:
        raise explain(path, error) from error
    try:
        _prepare(database, path)
    except sqlite3.Error as error:
        database.close()
        raise explain(path, error) from error
    except StoreError:
        database.close()
        raise
    return database


def _prepare(database: sqlite3.Connection, path: str) -> None:
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found == 0 and database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT;")
    elif found != FORMAT:
        raise StoreError(f"{path}: not a file of this version (format {found}, wanted {FORMAT}): use another file")
    database.execute("PRAGMA synchronous = NORMAL")


def explain(path: str, error: sqlite3.Error) -> StoreError:
    """Say what a fault of SQLite means for whoever runs the cluster."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    transient = code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    return StoreError(f"{path}: {error}: {ADVICE.get(code, UNKNOWN_FAULT)}", transient=transient)


def lock(path: str) -> FileLock:
    """Keep other processes off the file."""
    file = FileLock(Path(f"{path}.lock"))
    try:
        acquired = file.acquire()
    except OSError as error:
        raise StoreError(f"{path}.lock: {error.strerror}: use a directory that can be written to") from error
    if not acquired:
        raise StoreError(f"{path}: in use by process {file.holder()}: stop it, or use another file")
    return file
