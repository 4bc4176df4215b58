"""Checks the store's file before it is used: its structure by SQLite, and every row by its checksum.

In: the path of a file. Out: nothing; or a `StoreError` that names the problem. Neither the file nor its log is written, so
a damaged file stays as it is.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from localkube.apiserver.storage import layout
from localkube.apiserver.storage.files import beside
from localkube.apiserver.storage.storeerrors import DamagedError, StoreError, explain

DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})
"""What SQLite reports where the contents of a file are to blame."""


def inspect(path: Path) -> None:
    """Refuse a damaged file, and one of another format."""
    try:
        with closing(connect_readonly(path)) as database:
            (found,) = database.execute("PRAGMA user_version").fetchone()
            if found > layout.FORMAT:
                wanted = f"(format {found}, this one reads {layout.FORMAT})"
                raise StoreError(f"{path}: made by a newer version {wanted}: use that")
            problem = _problem(database) if found == layout.FORMAT else f"not a file of this version (format {found})"
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF not in DAMAGE:
            raise explain(str(path), error) from error
        problem = str(error)
    if problem:
        raise DamagedError(f"{path}: damaged: {problem}: restore a copy, or use another file")


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a file, which may be in use, for reading."""
    options = "mode=ro" if beside(path, "-wal").exists() else "immutable=1"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, timeout=1.0, isolation_level=None)


def _problem(database: sqlite3.Connection) -> str:
    """Return what is wrong with the contents, "" if nothing is."""
    (structure,) = database.execute("PRAGMA quick_check(1)").fetchone()
    if structure != "ok":
        return " ".join(line for line in str(structure).splitlines() if not line.startswith("***"))
    statements = {sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if statements != set(layout.STATEMENTS):
        return f"its tables are not those of format {layout.FORMAT}"
    for *row, checksum in database.execute("SELECT * FROM history"):
        if not isinstance(row[-1], bytes) or layout.row_checksum(row) != checksum:
            return f"the checksum of revision {row[0]} is wrong"
    counters = {name: (value, checksum) for name, value, checksum in database.execute("SELECT * FROM counters")}
    for name in layout.COUNTERS:
        value, checksum = counters.get(name, (None, None))
        if checksum != layout.counter_checksum(name, value):
            return f"the counter {name} is wrong"
    return "" if database.execute(layout.FITTING).fetchone() == (0,) else "its objects are not those of its history"
