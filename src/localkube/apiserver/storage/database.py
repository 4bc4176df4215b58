"""The database file of the store: creates, opens and upgrades it.

In: a path, or ":memory:". Out: an open SQLite database with the current layout, or a `StoreError` that names the file
and says what to do about it. A file that is damaged, or not ours, is refused by `inspection.py` before anything is
written to it. A new file gets its name when it is complete, so an empty file is always a damaged one.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from localkube.apiserver.storage import layout
from localkube.apiserver.storage.files import beside, new_file
from localkube.apiserver.storage.inspection import inspect, opened
from localkube.apiserver.storage.storeerrors import StoreError, explain

MEMORY: Final = ":memory:"

BUSY_TIMEOUT: Final = 0.2
"""Seconds to wait for another program that reads the file; the event loop is blocked meanwhile."""

PAGES_KEPT: Final = 512
"""KiB of the file that SQLite caches. The system's cache has the rest; reading a page from there takes a few microseconds.
SQLite's default, 2 MiB, fills up with events that are not read again."""

LOG_LIMIT: Final = 8 * 2**20
"""Bytes of the write-ahead log that are kept for reuse once its changes are in the file."""


def connect(path: str) -> sqlite3.Connection:
    """Check and open the file; create it if there is none; upgrade one of the previous format."""
    if path != MEMORY:
        _prepare(Path(path))
    with _explained(path):
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
    found = inspect(path)
    with _explained(str(path)):
        if not found:
            with new_file(path) as fresh, closing(sqlite3.connect(fresh, isolation_level=None)) as database:
                _lay_out(database)
        elif found == layout.UNCHECKED:
            _upgrade(path)


def _lay_out(database: sqlite3.Connection) -> None:
    """Create the tables of an empty store."""
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("PRAGMA journal_mode = WAL")
    database.executescript(f"BEGIN; {layout.SCHEMA} PRAGMA user_version = {layout.FORMAT}; COMMIT;")
    zeros = [(name, 0, layout.counter_checksum(name, 0)) for name in layout.COUNTERS]
    database.executemany("INSERT INTO counters VALUES (?, ?, ?)", zeros)


def _upgrade(path: Path) -> None:
    """Rebuild the file in the current format; the old one is kept as `….format-1`."""
    with new_file(path) as fresh:
        with closing(sqlite3.connect(fresh, isolation_level=None)) as database, opened(path) as (old, _):
            _lay_out(database)
            database.execute("BEGIN")
            database.executemany("INSERT INTO objects VALUES (?, ?, ?, ?)", old.execute("SELECT * FROM objects"))
            history = old.execute("SELECT * FROM history ORDER BY revision")
            rows = ((*row, layout.row_checksum(row)) for row in history)
            database.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            counters = [(*row, layout.counter_checksum(*row)) for row in old.execute("SELECT * FROM counters")]
            database.executemany("REPLACE INTO counters VALUES (?, ?, ?)", counters)
            database.execute("COMMIT")
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT)) as old_one:
            old_one.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)"
            )  # otherwise its log would be read as that of the new file
        kept = beside(path, f".format-{layout.UNCHECKED}")
        with suppress(FileNotFoundError):
            kept.unlink()
        path.rename(kept)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error
    except OSError as error:
        raise StoreError(f"{error.filename or path}: {error.strerror}: make the directory writable") from error
