"""The database file of the store: creates and opens it.

In: a path, or ":memory:". Out: an open SQLite database with the current layout, or a `StoreError` that names the file
and says what to do about it. A file that is damaged, or not ours, is refused by `inspection.py` before anything is
written to it. A new file gets its name when it is complete, so an empty file is always a damaged one.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from localkube.apiserver.storage import layout
from localkube.apiserver.storage.files import beside, new_file
from localkube.apiserver.storage.inspection import inspect
from localkube.apiserver.storage.storeerrors import DamagedError, explained

MEMORY: Final = ":memory:"

BUSY_TIMEOUT: Final = 0.2
"""Seconds to wait for another program that reads the file; the event loop is blocked meanwhile."""

PAGES_KEPT: Final = 512
"""KiB of the file that SQLite caches. The system's cache has the rest; reading a page from there takes a few microseconds.
SQLite's default, 2 MiB, fills up with events that are not read again."""

LOG_LIMIT: Final = 8 * 2**20
"""Bytes of the write-ahead log that are kept for reuse once its changes are in the file."""


def connect(path: str) -> sqlite3.Connection:
    """Check and open the file; create it if there is none."""
    if path != MEMORY:
        _prepare(Path(path))
    with explained(path):
        database = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None)
        try:
            if path == MEMORY:
                _lay_out(database)
            database.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT}")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(f"PRAGMA cache_size = -{PAGES_KEPT}")
            database.execute("BEGIN IMMEDIATE")  # a file that cannot be written fails here, not at the first write
            database.execute("ROLLBACK")
        except sqlite3.Error:
            database.close()
            raise
    return database


def _prepare(path: Path) -> None:
    if path.exists() and path.stat().st_size:  # of an empty one SQLite would remove the log
        inspect(path)
        return
    if path.exists() or beside(path, "-wal").exists() or any(path.parent.glob(f"{path.name}.copy-*")):
        raise DamagedError(f"{path}: missing or empty, but it was there: put the file back, or restore a copy")
    with (
        explained(path),
        new_file(path) as fresh,
        closing(sqlite3.connect(fresh, isolation_level=None)) as database,
    ):
        _lay_out(database)


def _lay_out(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("PRAGMA journal_mode = WAL")
    statements = (*layout.STATEMENTS, f"PRAGMA user_version = {layout.FORMAT}", "COMMIT;")
    database.executescript("BEGIN;" + ";".join(statements))
    zeros = [(name, 0, layout.counter_checksum(name, 0)) for name in layout.COUNTERS]
    database.executemany("INSERT INTO counters VALUES (?, ?, ?)", zeros)
