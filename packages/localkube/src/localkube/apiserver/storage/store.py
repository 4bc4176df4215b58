"""Stores all objects at all retained revisions, in a SQLite file or in memory.

```
objects   (resource, namespace, name) → revision      what exists now
history   revision → object as written, and the revision it replaced
```

One counter numbers all writes; it is the resourceVersion. Writes in one iteration of the event loop share a transaction
(group commit). A write is acknowledged (`wait_committed`) only after its commit. Client reads return only committed data,
because they first call `flush`, which commits pending writes. If the process is killed at any time, the file contains
all acknowledged writes.

The history is limited to `remembered` revisions and to a number of bytes (`compaction.py`). Older revisions are dropped,
except current objects, and reads at dropped revisions raise `CompactedError`. So lists can continue and watches can
resume at their revision. Free pages are returned to the file system, and free memory to the operating system.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
import structlog

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.storage import allocator, database
from localkube.apiserver.storage.compaction import BYTES, RetainedRevisions
from localkube.apiserver.storage.database import companion_path, counter_checksum, row_checksum
from localkube.apiserver.storage.diskreserve import DiskReserve
from localkube.apiserver.storage.encoding import encode
from localkube.apiserver.storage.lock import FileLock
from localkube.apiserver.storage.storeerrors import (
    CompactedError,
    ExistsError,
    StaleError,
    StoreError,
    TooLargeError,
    disk_full_error,
    store_error,
)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

ChangeType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
Row: TypeAlias = tuple[Any, ...]

MEMORY: Final = database.MEMORY

COMPACT_EVERY: Final = 1000
"""The number of revisions between two history compactions, each of which takes about 2 ms."""

FREE_PAGES: Final = 1024
"""The number of free pages that remain in the file for reuse (4 MiB)."""

RETURNED_PAGES: Final = 2048
"""The maximum number of free pages that one compaction returns, so that it takes a few milliseconds."""


LARGEST: Final = 1536 * 1024
"""The maximum size of an encoded object in bytes, as in etcd (`--max-request-bytes`)."""


class StoreKey(NamedTuple):
    """The key of an object: `plural.group`, its namespace (empty for cluster-scoped kinds) and its name."""

    resource: str
    namespace: str
    name: str


class Change(msgspec.Struct, frozen=True):
    """A write, with the new object (encoded and decoded, or the last state for DELETED), and the replaced object."""

    revision: int
    type: ChangeType
    key: StoreKey
    object: JSONObject
    value: bytes
    previous: JSONObject | None


class Store:
    """Owns the database file. Use it in one event loop only. `path` can be ":memory:"."""

    def __init__(self, path: str | Path = MEMORY, *, remembered: int = 10_000, remembered_bytes: int = BYTES) -> None:
        self.path = str(path)
        self._window = RetainedRevisions(remembered, remembered_bytes)
        self._subscribers: list[Callable[[Sequence[Change]], None]] = []
        self._failed: list[Callable[[Sequence[Change]], None]] = []
        self._pending: list[Change] = []
        self._committed: asyncio.Future[None] | None = None
        self._trims = False
        self._lock = None if self.path == MEMORY else FileLock(self.path)
        self._reserve = DiskReserve(None if self.path == MEMORY else companion_path(Path(self.path), "-reserve"))
        try:
            self._db = database.connect(self.path)
            self._reserve.has_room()
            self.revision = self._counter("revision")
            self.compacted = self._counter("compacted")
            retained = "SELECT length(value) FROM history WHERE revision > ? ORDER BY revision"
            for (size,) in self._rows(retained, self.compacted):
                self._window.add(size)
        except BaseException:
            self._release_file()
            raise
        self._saved = (self.revision, self.compacted)

    def subscribe(self, callback: Callable[[Sequence[Change]], None]) -> None:
        """Call the subscriber with the changes of every commit, in order."""
        self._subscribers.append(callback)

    def get(self, key: StoreKey) -> JSONObject | None:
        """Return the object, even if its write is not yet committed."""
        row = self._row(
            "SELECT value FROM objects JOIN history USING (revision)"
            " WHERE objects.resource = ? AND objects.namespace = ? AND objects.name = ?",
            *key,
        )
        return None if row is None else msgspec.json.decode(row[0])

    def current_object(self, revision: int) -> tuple[StoreKey, JSONObject] | None:
        """Return the object written at a revision with its key, or None if a later write changed or deleted it."""
        row = self._row(
            "SELECT objects.resource, objects.namespace, objects.name, value FROM history"
            " JOIN objects USING (resource, namespace, name, revision) WHERE revision = ?",
            revision,
        )
        return None if row is None else (StoreKey(*row[:3]), msgspec.json.decode(row[3]))

    def list(self, resource: str, namespace: str = "", *, after: tuple[str, str] = ("", "")) -> Iterator[bytes]:
        """Yield the encoded objects of a resource in the order of namespace and name, starting after `after`."""
        where, parameters = _range_condition(namespace, after, "objects")
        rows = self._rows(
            f"SELECT value FROM objects JOIN history USING (revision) WHERE objects.resource = ?{where}"  # noqa: S608 - constants
            " ORDER BY objects.namespace, objects.name",
            resource,
            *parameters,
        )
        return (row[0] for row in rows)

    def list_at(
        self, revision: int, resource: str, namespace: str = "", *, after: tuple[str, str] = ("", "")
    ) -> Iterator[bytes]:
        """Yield the encoded objects of a resource, as `list` does, at an earlier revision."""
        self._check_not_compacted(revision)
        now, parameters = _range_condition(namespace, after, "objects")
        then, _ = _range_condition(namespace, after, "old")
        rows = self._rows(
            "SELECT history.namespace, history.name, value FROM objects JOIN history USING (revision)"  # noqa: S608 - constants
            f" WHERE objects.resource = ? AND revision <= ?{now}"
            " UNION ALL SELECT old.namespace, old.name, old.value FROM history AS new"
            " JOIN history AS old ON old.revision = new.previous"
            f" WHERE new.revision > ? AND new.resource = ? AND new.previous BETWEEN 1 AND ?{then}"
            " ORDER BY 1, 2",
            resource,
            revision,
            *parameters,
            revision,
            resource,
            revision,
            *parameters,
        )
        return (row[2] for row in rows)

    def count(self, resource: str, namespace: str = "") -> int:
        """Return the number of objects of a resource."""
        where, parameters = _range_condition(namespace, ("", ""), "objects")
        row = self._row(f"SELECT count(*) FROM objects WHERE resource = ?{where}", resource, *parameters)  # noqa: S608 - constants
        return int(row[0]) if row else 0

    def changes_since(self, revision: int, resource: str) -> Iterator[Change]:
        """Yield the committed changes of a resource after a revision, oldest first."""
        self._check_not_compacted(revision)
        rows = self._rows(
            "SELECT new.revision, new.type, new.namespace, new.name, new.value, old.value FROM history AS new"
            " LEFT JOIN history AS old ON old.revision = new.previous"
            " WHERE new.revision > ? AND new.resource = ? ORDER BY new.revision",
            revision,
            resource,
        )
        for number, kind, namespace, name, value, old in rows:
            previous = None if old is None else msgspec.json.decode(old)
            key = StoreKey(resource, namespace, name)
            yield Change(number, kind, key, msgspec.json.decode(value), value, previous)

    def create(self, key: StoreKey, obj: JSONObject) -> JSONObject:
        """Store a new object, and return it with its resourceVersion. Raise an error if the disk is full."""
        if not self._reserve.has_room():
            raise disk_full_error(self.path)
        change = self._change("ADDED", key, obj, None)
        with self._transaction():
            try:
                self._execute("INSERT INTO objects VALUES (?, ?, ?, ?)", *key, self.revision + 1)
            except sqlite3.IntegrityError as error:
                raise ExistsError(key.name) from error
            self._record(change)
        return change.object

    def update(self, key: StoreKey, obj: JSONObject, previous: JSONObject) -> JSONObject:
        """Replace the object if it still equals `previous`, and return it with its new resourceVersion."""
        with self._transaction():
            self._require_current(key, previous)
            change = self._change("MODIFIED", key, obj, previous)
            self._record(change)
            self._execute(
                "UPDATE objects SET revision = ? WHERE resource = ? AND namespace = ? AND name = ?",
                change.revision,
                *key,
            )
        return change.object

    def delete(self, key: StoreKey, previous: JSONObject) -> JSONObject:
        """Remove the object if it still equals `previous`. Return its last state with the revision of the removal."""
        with self._transaction():
            self._require_current(key, previous)
            change = self._change("DELETED", key, previous, previous)
            self._record(change)
            self._execute("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", *key)
        return change.object

    async def wait_committed(self) -> None:
        """Wait until all previous writes are committed. Raise a `StoreError` if they were rolled back."""
        if self._committed is not None:
            await asyncio.shield(self._committed)

    def flush(self) -> None:
        """Commit pending writes and notify the subscribers. If the commit fails, `wait_committed` raises the error."""
        if self._committed is None:
            return
        try:
            self._compact()
            self._count("revision", self.revision)
            self._execute("COMMIT")
        except StoreError as error:
            self._roll_back(error)
            return
        committed, changes = self._committed, self._pending
        self._committed, self._pending = None, []
        for change in changes:
            self._window.add(len(change.value))
        self._window.drop(self.compacted - self._saved[1])
        self._trims |= self.compacted > self._saved[1]
        self._saved = (self.revision, self.compacted)
        if not committed.done():
            committed.set_result(None)
        self._notify(changes)
        if self._trims and self._committed is None:
            self._trims = False
            self._return_pages()
            allocator.trim_memory()

    def _notify(self, changes: Sequence[Change]) -> None:
        """Notify the subscribers. A failing subscriber does not prevent other notifications or later writes."""
        for subscriber in self._subscribers:
            try:
                subscriber(changes)
            except Exception:  # the writes are committed even if a subscriber fails
                if subscriber not in self._failed:
                    self._failed.append(subscriber)
                    log.exception(
                        "a subscriber of the store failed, and its further failures are not logged",
                        subscriber=repr(subscriber),
                    )

    def close(self) -> None:
        """Commit pending writes and release the file."""
        try:
            self.flush()
            self._db.close()
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error
        finally:
            self._release_file()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Join or begin the transaction of this loop iteration. A file error rolls it back completely."""
        if self._committed is None:
            self._execute("BEGIN IMMEDIATE")
            loop = asyncio.get_running_loop()
            self._committed = loop.create_future()
            loop.call_soon(self.flush)
        try:
            yield
        except StoreError as error:
            self._roll_back(error)
            raise

    def _change(self, kind: ChangeType, key: StoreKey, obj: JSONObject, previous: JSONObject | None) -> Change:
        """Return the next change without writing it. The size limit does not apply to deletions."""
        revision = self.revision + 1
        stamped = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
        value = encode(stamped)
        if len(value) > LARGEST and kind != "DELETED":
            raise TooLargeError
        return Change(revision, kind, key, stamped, value, previous)

    def _record(self, change: Change) -> None:
        replaced = 0 if change.previous is None else _revision(change.previous)
        row = (change.revision, *change.key, change.type, replaced, change.value)
        self._execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *row, row_checksum(row))
        self.revision = change.revision
        self._pending.append(change)

    def _require_current(self, key: StoreKey, previous: JSONObject) -> None:
        row = self._row("SELECT revision FROM objects WHERE resource = ? AND namespace = ? AND name = ?", *key)
        if row is None or row[0] != _revision(previous):
            raise StaleError(key.name)

    def _check_not_compacted(self, revision: int) -> None:
        if revision < self.compacted:
            raise CompactedError(self.compacted)

    def _compact(self) -> None:
        expired = self._window.expired(self.revision - self.compacted, COMPACT_EVERY)
        if not expired:
            return
        until = self.compacted + expired
        self._execute(
            "DELETE FROM history WHERE revision IN (SELECT previous FROM history WHERE revision > ? AND revision <= ?)",
            self.compacted,
            until,
        )
        self._execute(
            "DELETE FROM history WHERE type = 'DELETED' AND revision > ? AND revision <= ?", self.compacted, until
        )
        self._count("compacted", until)
        self.compacted = until

    def _return_pages(self) -> None:
        """Return free pages to the file system or to the allocator. If the file is busy, retry later."""
        with suppress(sqlite3.Error):
            if self._db.execute("PRAGMA freelist_count").fetchone()[0] > FREE_PAGES:
                self._db.executescript(f"PRAGMA incremental_vacuum({RETURNED_PAGES})")  # execute() stops after one page

    def _roll_back(self, error: StoreError) -> None:
        """Roll back all writes of this loop iteration, and notify their writers."""
        committed, self._committed, self._pending = self._committed, None, []
        if error.is_full:
            self._reserve.free()
        with suppress(sqlite3.Error):  # after a file error, SQLite has already rolled back the transaction
            self._db.rollback()
        self.revision, self.compacted = self._saved
        if committed is not None and not committed.done():
            committed.set_exception(error)
            committed.exception()  # mark the exception as retrieved, because only the failing writer raises it

    def _count(self, name: str, value: int) -> None:
        checksum = counter_checksum(name, value)
        self._execute("UPDATE counters SET value = ?, checksum = ? WHERE name = ?", value, checksum, name)

    def _counter(self, name: str) -> int:
        ((value,),) = self._rows("SELECT value FROM counters WHERE name = ?", name)
        return int(value)

    def _row(self, statement: str, *parameters: str | int) -> Row | None:
        return next(self._rows(statement, *parameters), None)

    def _rows(self, statement: str, *parameters: str | int) -> Iterator[Row]:
        try:
            yield from self._execute(statement, *parameters)
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def _execute(self, statement: str, *parameters: str | int | bytes) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, parameters)
        except sqlite3.IntegrityError:
            raise  # an object with this key exists
        except sqlite3.Error as error:
            raise store_error(self.path, error) from error

    def _release_file(self) -> None:
        opened: sqlite3.Connection | None = getattr(self, "_db", None)  # None if the file could not be opened
        if opened is not None:
            opened.close()
        self._reserve.release()
        if self._lock is not None:
            self._lock.release()


def _range_condition(namespace: str, after: tuple[str, str], table: str) -> tuple[str, tuple[str, ...]]:
    """Return the SQL condition (and its parameters) for rows in the namespace after `after`."""
    conditions = f" AND {table}.namespace = ?" if namespace else ""
    parameters: tuple[str, ...] = (namespace,) if namespace else ()
    if after != ("", ""):
        conditions += f" AND ({table}.namespace, {table}.name) > (?, ?)"
        parameters += after
    return conditions, parameters


def _revision(obj: JSONObject) -> int:
    return int(obj["metadata"]["resourceVersion"])
