"""Tests the revisions, group commits and history of the store, and failures of its file."""

import asyncio
import os
import resource
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
import structlog

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.storage.diskreserve import SIZE
from localkube.apiserver.storage.store import (
    LARGEST,
    Change,
    Store,
    StoreKey,
)
from localkube.apiserver.storage.storeerrors import CompactedError, ExistsError, StaleError, StoreError, TooLargeError

pytestmark = pytest.mark.slow

A = StoreKey("pods", "default", "a")
B = StoreKey("pods", "other", "b")


def obj(name: str, value: str = "") -> JSONObject:
    return {"kind": "Pod", "metadata": {"name": name}, "value": value}


def values(rows: Iterator[bytes]) -> list[str]:
    return [msgspec.json.decode(row)["value"] for row in rows]


def run(scenario: Callable[[Store], Awaitable[None]], store: Store) -> None:
    async def act() -> None:
        with closing(store):
            await scenario(store)

    asyncio.run(act())


async def test_every_write_has_the_next_revision() -> None:
    with closing(Store()) as store:
        first = store.create(A, obj("a", "1"))
        second = store.update(A, first | {"value": "2"}, first)
        last = store.delete(A, second)
        assert [one["metadata"]["resourceVersion"] for one in (first, second, last)] == ["1", "2", "3"]
        assert last["value"] == "2"
        assert store.get(A) is None


async def test_writes_require_the_current_revision() -> None:
    with closing(Store()) as store:
        first = store.create(A, obj("a"))
        with pytest.raises(ExistsError):
            store.create(A, obj("a"))
        store.update(A, first, first)
        with pytest.raises(StaleError):
            store.update(A, first, first)
        with pytest.raises(StaleError):
            store.delete(B, first)
        await store.wait_committed()
        assert store.revision == 2


async def test_object_is_found_by_its_revision_until_it_changes() -> None:
    with closing(Store()) as store:
        first = store.create(A, obj("a", "1"))
        other = store.create(B, obj("b"))
        assert store.current_object(1) == (A, first)
        second = store.update(A, first | {"value": "2"}, first)
        assert store.current_object(1) is None
        assert store.current_object(3) == (A, second)
        store.delete(A, second)
        assert [store.current_object(number) for number in (1, 2, 3, 4, 99)] == [None, (B, other), None, None, None]


async def test_writes_of_one_turn_are_committed_together() -> None:
    with closing(Store()) as store:
        commits: list[Sequence[Change]] = []
        store.subscribe(commits.append)
        store.create(A, obj("a"))
        store.create(B, obj("b"))
        assert commits == []
        await store.wait_committed()
        assert [[change.key for change in commit] for commit in commits] == [[A, B]]


async def test_reader_can_force_the_commit() -> None:
    with closing(Store()) as store:
        commits: list[Sequence[Change]] = []
        store.subscribe(commits.append)
        store.create(A, obj("a"))
        store.flush()
        assert len(commits) == 1
        await store.wait_committed()
        assert len(commits) == 1


async def test_lists_are_ordered_and_may_start_at_any_key() -> None:
    with closing(Store()) as store:
        for namespace, name in (("b", "y"), ("a", "z"), ("a", "x")):
            store.create(StoreKey("pods", namespace, name), obj(name, f"{namespace}/{name}"))
        store.create(StoreKey("services", "a", "s"), obj("s", "service"))
        assert values(store.list("pods")) == ["a/x", "a/z", "b/y"]
        assert values(store.list("pods", "a")) == ["a/x", "a/z"]
        assert values(store.list("pods", after=("a", "x"))) == ["a/z", "b/y"]
        assert (store.count("pods"), store.count("pods", "b")) == (3, 1)


async def test_past_revision_can_be_listed() -> None:
    with closing(Store()) as store:
        a = store.create(A, obj("a", "a1"))
        store.create(B, obj("b", "b1"))
        then = store.revision
        a = store.update(A, a | {"value": "a2"}, a)
        store.update(A, a | {"value": "a3"}, a)
        b = store.get(B)
        assert b is not None
        store.delete(B, b)
        store.create(B, obj("b", "b2"))
        assert values(store.list("pods")) == ["a3", "b2"]
        assert values(store.list_at(then, "pods")) == ["a1", "b1"]
        assert values(store.list_at(then, "pods", "other")) == ["b1"]
        assert values(store.list_at(then, "pods", after=("default", "a"))) == ["b1"]
        assert values(store.list_at(1, "pods")) == ["a1"]


async def test_changes_include_the_replaced_object() -> None:
    with closing(Store()) as store:
        first = store.create(A, obj("a", "1"))
        store.create(StoreKey("services", "a", "s"), obj("s"))
        second = store.update(A, first | {"value": "2"}, first)
        store.delete(A, second)
        await store.wait_committed()
        changes = list(store.changes_since(1, "pods"))
        assert [(change.type, change.revision) for change in changes] == [("MODIFIED", 3), ("DELETED", 4)]
        assert [change.previous and change.previous["value"] for change in changes] == ["1", "2"]


async def test_history_is_bounded_and_current_objects_are_kept() -> None:
    with closing(Store(remembered=500)) as store:
        store.create(B, obj("b", "kept"))
        current = store.create(A, obj("a", "0"))
        for number in range(2500):
            current = store.update(A, current | {"value": str(number)}, current)
            if number % 100 == 0:
                await store.wait_committed()
        await store.wait_committed()
        assert store.compacted >= 1000
        assert values(store.list("pods")) == ["2499", "kept"]
        assert values(store.list_at(store.compacted, "pods"))[1] == "kept"
        assert next(store.changes_since(store.compacted, "pods")).previous is not None
        with pytest.raises(CompactedError):
            list(store.changes_since(store.compacted - 1, "pods"))
        with pytest.raises(CompactedError):
            list(store.list_at(1, "pods"))


def test_store_continues_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"

    async def write(store: Store) -> None:
        store.create(A, obj("a", "1"))
        await store.wait_committed()

    async def read(store: Store) -> None:
        assert values(store.list("pods")) == ["1"]
        assert [change.revision for change in store.changes_since(0, "pods")] == [1]
        assert store.create(B, obj("b"))["metadata"]["resourceVersion"] == "2"

    run(write, Store(path))
    run(read, Store(path))


async def churn(store: Store, writes: int, size: int) -> None:
    """Create and delete large objects. One object remains."""
    kept = store.create(B, obj("b", "kept"))
    for number in range(writes):
        key = StoreKey("pods", "default", f"p-{number}")
        created = store.create(key, obj(key.name, "x" * size))
        store.delete(key, created)
        await store.wait_committed()
    assert store.get(B) == kept


async def test_history_is_bounded_in_bytes() -> None:
    with closing(Store(remembered_bytes=1000000)) as store:
        await churn(store, 400, 10_000)
        remembered = sum(len(change.value) for change in store.changes_since(store.compacted, "pods"))
        assert 500_000 <= remembered <= 1_100_000
        with pytest.raises(CompactedError):
            list(store.changes_since(1, "pods"))


def test_file_and_log_shrink_after_a_burst(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"

    async def burst(store: Store) -> None:
        await churn(store, 200, 40_000)

    async def after(store: Store) -> None:
        for number in range(2000):
            current = store.get(B) or store.create(B, obj("b"))
            store.update(B, current | {"value": str(number)}, current)
            if number % 10 == 0:
                await store.wait_committed()

    run(burst, Store(path, remembered=100_000, remembered_bytes=2**30))
    assert path.stat().st_size > 16_000_000
    run(after, Store(path, remembered=1000, remembered_bytes=1_000_000))
    assert path.stat().st_size < 8_000_000


def test_second_process_is_rejected_with_the_first_one_named(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    first = Store(path)
    with pytest.raises(StoreError, match=r"cluster\.db: in use by process \d+. Stop it, or use a different file"):
        Store(path)
    first.close()
    Store(path).close()


def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cluster\.db\.lock: No such file or directory. Use a writable directory"):
        Store(tmp_path / "missing" / "cluster.db")


def test_damaged_file_is_named_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    path.write_bytes(b"these are not the bytes of a database" * 100)
    before = path.read_bytes()
    with pytest.raises(
        StoreError,
        match=r"cluster\.db: the file is damaged: file is not a database. Delete it, or use a different file",
    ):
        Store(path)
    assert path.read_bytes() == before


def test_file_of_a_different_program_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreError, match=r"cluster\.db: the file is damaged: database format \d+ is not supported"):
        Store(path)


def test_file_without_counters_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    Store(path).close()
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DELETE FROM counters")
    with pytest.raises(
        StoreError, match=r"cluster\.db: the file is damaged: checksum mismatch in counter revision"
    ) as caught:
        Store(path)
    assert [link for link in open_files() if str(path) in link] == [], str(caught.value)


def open_files() -> list[str]:
    """Return the files that this process has opened."""
    return [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let the kernel reject growing files in the same way as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_full_disk_fails_writes_and_keeps_the_old_data(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"

    async def scenario(store: Store) -> None:
        store.create(A, obj("a", "old"))
        await store.wait_committed()
        with file_size_limit(os.stat(f"{path}-wal").st_size):  # noqa: PTH116
            store.create(B, obj("b", "x" * 100_000))
            with pytest.raises(StoreError, match=r"cluster\.db: .*\. (Free disk space|Check the disk)") as caught:
                await store.wait_committed()
            assert "Stored objects are intact" in str(caught.value)
        assert values(store.list("pods")) == ["old"]
        assert store.create(B, obj("b", "new"))["metadata"]["resourceVersion"] == "2"
        await store.wait_committed()

    run(scenario, Store(path))


def test_full_disk_rejects_new_objects_and_permits_deletions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reserve is released after the first failed write, and is reallocated after disk space is available."""
    path = tmp_path / "cluster.db"
    room = os.statvfs(tmp_path)

    async def scenario(store: Store) -> None:
        first = store.create(A, obj("a", "old"))
        await store.wait_committed()
        assert (tmp_path / "cluster.db-reserve").stat().st_size == SIZE
        no_room = os.statvfs_result((*room[:4], 0, *room[5:]))
        monkeypatch.setattr(os, "statvfs", lambda _: no_room)
        (pages,) = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="database or disk is full"):
            store.create(B, obj("b", "x" * 100_000))
        assert not (tmp_path / "cluster.db-reserve").exists()
        store._db.execute(f"PRAGMA max_page_count = {pages + 100}")  # the reserve is free now
        with pytest.raises(StoreError, match=r"full. Free disk space, or delete objects"):
            store.create(B, obj("b", "small"))
        store.delete(A, store.update(A, first | {"value": "deleting"}, first))
        await store.wait_committed()
        assert values(store.list("pods")) == []
        monkeypatch.setattr(os, "statvfs", lambda _: room)
        store.create(B, obj("b", "new"))
        await store.wait_committed()
        assert (tmp_path / "cluster.db-reserve").exists()

    run(scenario, Store(path))
    assert not (tmp_path / "cluster.db-reserve").exists()


def test_locked_file_fails_writes_temporarily(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"

    async def scenario(store: Store) -> None:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="Close the process that uses the file") as caught:
            store.create(A, obj("a"))
        assert caught.value.transient
        other.execute("ROLLBACK")
        other.close()
        store.create(A, obj("a"))
        await store.wait_committed()

    run(scenario, Store(path))


async def test_too_large_object_is_rejected_and_others_are_kept() -> None:
    with closing(Store()) as store:
        first = store.create(A, obj("a", "1"))
        with pytest.raises(TooLargeError, match="etcdserver: request is too large"):
            store.create(B, obj("b", "x" * LARGEST))
        with pytest.raises(TooLargeError):
            store.update(A, first | {"value": "x" * LARGEST}, first)
        store.create(B, obj("b", "x" * (LARGEST - 200)))
        await store.wait_committed()
        assert store.get(A) == first
        assert store.revision == 2


async def test_failing_write_reverts_its_whole_turn() -> None:
    with closing(Store()) as store:
        commits: list[Sequence[Change]] = []
        store.subscribe(commits.append)
        store.create(A, obj("a", "1"))
        first = asyncio.ensure_future(store.wait_committed())
        await asyncio.sleep(0)
        await first
        store._db.execute("PRAGMA max_page_count = 1")
        store.create(B, obj("b", "2"))
        with pytest.raises(StoreError, match="database or disk is full"):
            store.create(StoreKey("pods", "x", "c"), obj("c", "x" * 1_000_000))
        store.flush()
        assert values(store.list("pods")) == ["1"]
        assert store.revision == 1
        assert len(commits) == 1


async def test_failing_disk_fails_writes_but_not_reads() -> None:
    with closing(Store()) as store:
        store.create(A, obj("a", "1"))
        await store.wait_committed()

        async def write() -> None:
            store.create(B, obj("b", "2"))
            store._db.set_authorizer(lambda _, what, *__: int(what == "COMMIT"))
            await store.wait_committed()

        async def read() -> list[str]:
            store.flush()
            store._db.set_authorizer(None)
            return values(store.list("pods"))

        written, seen = await asyncio.gather(write(), read(), return_exceptions=True)
        assert isinstance(written, StoreError)
        assert seen == ["1"]


async def test_failing_subscriber_affects_no_other_and_no_write() -> None:
    with closing(Store()) as store:
        heard: list[str] = []

        def fail(changes: Sequence[Change]) -> None:
            raise RuntimeError(f"cannot take {len(changes)} changes")

        store.subscribe(fail)
        store.subscribe(lambda changes: heard.extend(change.key.name for change in changes))
        with structlog.testing.capture_logs() as logged:
            store.create(A, obj("a"))
            await asyncio.wait_for(store.wait_committed(), 10)
            store.create(B, obj("b"))
            store.flush()
        await asyncio.wait_for(store.wait_committed(), 10)
        assert heard == ["a", "b"]
        assert [entry["log_level"] for entry in logged] == ["error"]
