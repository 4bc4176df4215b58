"""Creates and opens the database file of the store.

In: a path, or ":memory:". Out: an open SQLite database with the current layout, or a `StoreError` that names the file
and says what to do about it. A file that is damaged, or not ours, is refused before anything is written to it:
SQLite detects malformed pages, the checksum of a row flipped bits in its columns. A new file gets its name when it is complete, so an empty file is always a damaged one.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from localkube.apiserver.storage.storeerrors import DamagedError, StoreError, convert_errors, store_error


def companion_path(path: Path, suffix: str) -> Path:
    """Return the path of a file that accompanies a different file.

    >>> companion_path(Path("/state/state.db"), "-wal")
    PosixPath('/state/state.db-wal')
    """
    return path.with_name(path.name + suffix)


@contextmanager
def create_atomically(path: Path) -> Iterator[Path]:
    """Create a file (mode 0600) with a temporary name, and rename it when the context exits without an error."""
    fresh = companion_path(path, ".new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # independent of the umask
        yield fresh
        os.fsync(descriptor)
        fresh.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            fresh.unlink()
        raise
    finally:
        os.close(descriptor)


FORMAT: Final = 2
"""The version of the table layout in `PRAGMA user_version`."""

STATEMENTS: Final = (
    """CREATE TABLE objects (
  resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
  PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID""",
    """CREATE TABLE history (
  revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  type TEXT NOT NULL, previous INTEGER NOT NULL, value BLOB NOT NULL, checksum INTEGER NOT NULL
)""",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID",
)
COUNTERS: Final = ("revision", "compacted")

FITTING: Final = (
    "SELECT (SELECT count(*) FROM objects LEFT JOIN history USING (revision, resource, namespace, name)"
    " WHERE value IS NULL OR type = 'DELETED') + (SELECT count(*) FROM history WHERE type != 'DELETED'"
    " AND revision NOT IN (SELECT previous FROM history) AND revision NOT IN (SELECT revision FROM objects))"
)
"""Counts current objects that are missing in the history, and vice versa. The result is 0 if the file is complete."""


def row_checksum(row: Sequence[Any]) -> int:
    """Return the checksum of a history row. Its last column is the value as bytes."""
    *head, value = row
    return crc32(value, crc32("\0".join(map(str, head)).encode()))


def counter_checksum(name: str, value: int) -> int:
    """Return the checksum of a counter.

    >>> counter_checksum("revision", 1) == counter_checksum("revision", 2)
    False
    """
    return crc32(f"{name}\0{value}".encode())


DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""The SQLite error codes for a damaged file."""


def check_file(path: Path) -> None:
    """Raise an error if a file is damaged or has a different format."""
    try:
        with closing(connect_readonly(path)) as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version > FORMAT:
                formats = f"(format {version}, but only format {FORMAT} is supported)"
                raise StoreError(f"{path}: the file was created by a newer version {formats}. Use that version")
            problem = _problem(database) if version == FORMAT else f"database format {version} is not supported"
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in DAMAGE:
            raise store_error(str(path), error) from error
        problem = str(error)
    if problem:
        raise DamagedError(f"{path}: the file is damaged: {problem}. Delete it, or use a different file")


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a file for reading. The file may be in use."""
    options = "mode=ro" if companion_path(path, "-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, timeout=1.0, isolation_level=None)


def _problem(database: sqlite3.Connection) -> str:
    """Return the problem with the content, or an empty string if there is none."""
    (structure,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if structure != "ok":
        return " ".join(line for line in str(structure).splitlines() if not line.startswith("***"))
    statements = {sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if statements != set(STATEMENTS):
        return f"the tables do not have format {FORMAT}"
    for *row, checksum in database.execute("SELECT * FROM history"):
        if not isinstance(row[-1], bytes) or row_checksum(row) != checksum:
            return f"checksum mismatch in revision {row[0]}"
    counters = {name: (value, checksum) for name, value, checksum in database.execute("SELECT * FROM counters")}
    for name in COUNTERS:
        value, checksum = counters.get(name, (None, None))
        if checksum != counter_checksum(name, value):
            return f"checksum mismatch in counter {name}"
    return "" if database.execute(FITTING).fetchone() == (0,) else "the objects do not match their history"


MEMORY: Final = ":memory:"

BUSY_TIMEOUT: Final = 0.2
"""The number of seconds to wait for another process that reads the file. The wait blocks the event loop."""

PAGES_KEPT: Final = 512
"""The size of SQLite's page cache in KiB.

The system caches the other pages, from which a read takes a few microseconds. SQLite's default of 2 MiB fills up with
events that are not read again.
"""

LOG_LIMIT: Final = 8 * 2**20
"""The size of the write-ahead log that is retained for reuse after a checkpoint, in bytes."""


def connect(path: str) -> sqlite3.Connection:
    """Check and open the file. Create it if it does not exist."""
    if path != MEMORY:
        _prepare_file(Path(path))
    with convert_errors(path):
        database = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None)
        try:
            if path == MEMORY:
                _create_tables(database)
            database.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT}")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(f"PRAGMA cache_size = -{PAGES_KEPT}")
            database.execute("BEGIN IMMEDIATE")  # detect a read-only file now instead of at the first write
            database.execute("ROLLBACK")
        except sqlite3.Error:
            database.close()
            raise
    return database


def _prepare_file(path: Path) -> None:
    if path.exists() and path.stat().st_size:  # SQLite would remove the log of an empty file
        check_file(path)
        return
    if path.exists() or companion_path(path, "-wal").exists():
        raise DamagedError(f"{path}: the file is missing or empty. Restore it, or delete the remaining files")
    with (
        convert_errors(path),
        create_atomically(path) as fresh,
        closing(sqlite3.connect(fresh, isolation_level=None)) as database,
    ):
        _create_tables(database)


def _create_tables(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("PRAGMA journal_mode = WAL")
    statements = (*STATEMENTS, f"PRAGMA user_version = {FORMAT}", "COMMIT;")
    database.executescript("BEGIN;" + ";".join(statements))
    zeros = [(name, 0, counter_checksum(name, 0)) for name in COUNTERS]
    database.executemany("INSERT INTO counters VALUES (?, ?, ?)", zeros)
