"""Checks the store's file before it is opened for writing.

In: the path of a file. Out: its format, 0 if there is no file yet; or a `StoreError` that names the problem. The
check writes nothing to the file, to its write-ahead log or to their index: it reads them through links in a
temporary directory, so that SQLite neither removes nor checkpoints the log.

The check covers the file's header, its structure (`PRAGMA quick_check`) and the tables' definitions. SQLite must accept
all transactions of the log; the checksum of every row must be right, and current objects must fit the history.
"""

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from localkube.apiserver.storage import layout, writeahead
from localkube.apiserver.storage.files import beside
from localkube.apiserver.storage.storeerrors import DamagedError, StoreError, explain

LIMIT: Final = 120.0
"""Seconds for the check; a file of 100 MiB takes less than one."""

STEPS: Final = 100_000
"""Instructions of SQLite's virtual machine between two readings of the clock."""

MAGIC: Final = b"SQLite format 3\0"
CONSTANT: Final = ((18, b"\2\2\0\x40\x20\x20"), (44, b"\0\0\0\4\0\0\0\0"), (56, b"\0\0\0\1"), (68, bytes(24)))
"""The header of the store's files at these offsets: WAL mode, no reserved bytes, schema format 4, UTF-8, no other
application, and zeros."""


def inspect(path: Path) -> int:
    """Return the format of the file, 0 if there is none; refuse a damaged one."""
    log = beside(path, "-wal")
    _require_regular(path)
    _require_regular(log)
    if not path.exists():
        if log.exists() and log.stat().st_size:
            raise DamagedError(
                f"{path}: missing, but its log {log.name} is there: put the file back, or restore a copy"
            )
        if any(path.parent.glob(f"{path.name}.copy-*")):
            raise DamagedError(f"{path}: missing, but copies of it are there: put the file back, or restore a copy")
        return 0
    _require_header(path)
    journal = beside(path, "-journal")
    if journal.exists() and journal.stat().st_size:
        raise DamagedError(f"{path}: damaged: {journal.name} is not of the embedded cluster: move it away")
    try:
        with opened(path) as (database, lost):
            found = inspect_contents(database, path)
            if lost:
                raise DamagedError(f"{path}: damaged: the last changes in {log.name} cannot be read", salvageable=True)
            return found
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from error
    except OSError as error:
        raise StoreError(f"{error.filename}: {error.strerror}: the file cannot be checked") from error


@contextmanager
def opened(path: Path) -> Iterator[tuple[sqlite3.Connection, bool]]:
    """Open the file with its log for reading; yield also whether the log has transactions that SQLite cannot read."""
    log = beside(path, "-wal")
    if not log.exists() or log.stat().st_size == 0:
        with closing(connect_readonly(path, "immutable=1")) as database:
            yield database, False
        return
    expected = writeahead.last_commit(log)
    links = beside(path, ".check")
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir(mode=0o700)
    try:
        for one in (path, log):
            _link(one, links / one.name)
        linked = links / path.name
        with closing(connect_readonly(linked, "mode=ro")) as database:
            database.execute("BEGIN")
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            accepted = writeahead.accepted(beside(linked, "-shm"))
            yield database, expected is None or accepted < expected
    finally:
        shutil.rmtree(links, ignore_errors=True)


def connect_readonly(path: Path, options: str) -> sqlite3.Connection:
    """Open a file for reading; a statement that takes too long is interrupted."""
    quoted = str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    database = sqlite3.connect(f"file:{quoted}?{options}", uri=True, timeout=1.0, isolation_level=None)
    end = time.monotonic() + LIMIT
    database.set_progress_handler(lambda: int(time.monotonic() > end), STEPS)
    return database


def inspect_contents(database: sqlite3.Connection, path: Path) -> int:
    """Return the format of an open file; refuse one whose contents are damaged."""
    found = int(database.execute("PRAGMA user_version").fetchone()[0])
    if found > layout.FORMAT:
        raise StoreError(f"{path}: made by a newer version (format {found}, this one reads {layout.FORMAT}): use that")
    if found not in {layout.FORMAT, layout.UNCHECKED}:
        raise DamagedError(
            f"{path}: not a file of this version (format {found}, wanted {layout.FORMAT}): use another file"
        )
    if found == layout.FORMAT:  # in older formats the header may be in the log only
        _require_constants(path)
    problems = [row[0] for row in database.execute("PRAGMA quick_check(3)")]
    if problems != ["ok"]:
        lines = [line for text in problems for line in str(text).splitlines() if not line.startswith("***")]
        raise DamagedError(f"{path}: damaged: {'; '.join(lines)}")
    if _definitions(database) != _expected(found):
        raise DamagedError(f"{path}: damaged: its tables are not those of format {found}")
    if problem := _problem(database, checked=found == layout.FORMAT):
        raise DamagedError(f"{path}: damaged: {problem}")
    return found


def _problem(database: sqlite3.Connection, *, checked: bool) -> str:
    """Return the inconsistency of the rows, "" if there is none."""
    newest: dict[tuple[str, str, str], int] = {}
    last = 0
    columns = "revision, resource, namespace, name, type, previous, value" + (", checksum" if checked else "")
    for row in database.execute(f"SELECT {columns} FROM history ORDER BY revision"):  # noqa: S608 - constants
        try:
            if checked and layout.row_checksum(row[:7]) != row[7]:
                return f"the checksum of revision {row[0]} is wrong"
        except TypeError:  # a column is not of its type
            return f"revision {row[0]} cannot be read"
        last, key = row[0], row[1:4]
        if row[4] == "DELETED":
            newest.pop(key, None)
        else:
            newest[key] = last
    current = [(tuple(row[:3]), row[3]) for row in database.execute("SELECT * FROM objects")]
    if dict(current) != newest or [key for key, _ in current] != sorted(newest, key=_order):
        return "the current objects are not those of the history"
    found = database.execute("SELECT count(*) FROM objects JOIN history USING (revision)").fetchone()[0]
    if found != len(current):
        return "objects cannot be found by their revision"
    return _counter_problem(database, last, checked=checked)


def _counter_problem(database: sqlite3.Connection, last: int, *, checked: bool) -> str:
    counters = {row[0]: row[1:] for row in database.execute("SELECT * FROM counters")}
    if tuple(sorted(counters)) != tuple(sorted(layout.COUNTERS)):
        return "a counter is missing"
    for name, (value, *checksum) in counters.items():
        if not isinstance(value, int) or (checked and checksum != [layout.counter_checksum(name, value)]):
            return f"the counter {name} is wrong"
    if counters["revision"][0] != last or counters["compacted"][0] > counters["revision"][0]:
        return "the counters do not fit the history"
    return ""


def _order(key: tuple[str, str, str]) -> tuple[bytes, ...]:
    """Return the key by which SQLite sorts."""
    return tuple(part.encode() for part in key)


def _definitions(database: sqlite3.Connection) -> set[tuple[object, ...]]:
    return set(database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _expected(found: int) -> set[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:")) as model:
        model.executescript(layout.SCHEMA if found == layout.FORMAT else layout.SCHEMA_1)
        return _definitions(model)


def _require_regular(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}: use a directory that can be read") from error
    if not stat.S_ISREG(mode):
        raise DamagedError(f"{path}: not a regular file: move it away, or use another file")


def _require_header(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}: make the file readable") from error
    if not head:
        raise DamagedError(f"{path}: damaged: the file is empty (0 bytes): restore a copy, or delete it")
    if not head.startswith(MAGIC) or len(head) < 100:
        raise DamagedError(
            f"{path}: file is not a database: this is not a file of the embedded cluster: use another, or restore a copy"
        )


def _require_constants(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(100)
    for offset, value in CONSTANT:
        if head[offset : offset + len(value)] != value:
            raise DamagedError(f"{path}: damaged: its header is wrong at byte {offset}")


def _refusal(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    """Return the `StoreError` for an error of SQLite; an error in stored content is reported as damage."""
    code = getattr(error, "sqlite_errorcode", None)
    if code == sqlite3.SQLITE_INTERRUPT:
        return StoreError(f"{path}: not checked within {LIMIT:.0f} s: make sure that the disk is well, and try again")
    if code is None or code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}:
        return DamagedError(f"{path}: damaged: {error}: restore a copy, or use another file")
    return explain(str(path), error)


def _link(path: Path, target: Path) -> None:
    """Link a file under a second name; copy it if the file system has no links."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)
