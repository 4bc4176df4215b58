"""Copies of the objects: when they are made, how many stay, and what restoring does."""

import asyncio
import itertools
import os
import sqlite3
from collections.abc import Coroutine
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.localkube.apiserver.harness import StoppedClock

from kuberuntime.clock import SystemClock
from localkube.apiserver.storage import copies
from localkube.apiserver.storage.copies import KEPT, Copies
from localkube.apiserver.storage.store import Store, StoreKey
from localkube.apiserver.storage.storeerrors import DamagedError, StoreError

pytestmark = pytest.mark.slow

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(days=36500)


def write(store: Store, name: str) -> None:
    store.create(StoreKey("pods", "default", name), {"metadata": {"name": name}})
    store.flush()


def names(path: Path) -> list[str]:
    """Return the names of what a store starts with."""
    store = Store(path)
    try:
        return [str(change.object["metadata"]["name"]) for change in store.changes_since(0, "pods")]
    finally:
        store.close()


def with_loop(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return the file of a stopped store whose copy lacks its last object."""
    path = tmp_path / "state.db"

    async def scenario() -> None:
        store = Store(path)
        write(store, "a")
        copies.take(path, NOW)
        write(store, "b")
        store.close()

    with_loop(scenario())
    return path


async def test_a_copy_of_a_running_store_has_all_that_is_committed_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    store = Store(path)
    write(store, "a")
    copies.take(path, NOW)
    (copy,) = copies.find(path, LATER)
    assert copy.path.name == "state.db.copy-20260102T030405Z"
    assert copy.path.stat().st_mode & 0o777 == 0o600
    assert names(copy.path) == ["a"]
    store.close()


async def test_the_newest_copies_stay(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    store = Store(path)
    (tmp_path / "state.db.copy-20250101T000000Z.new").write_bytes(b"never finished")
    for hour in range(KEPT + 2):
        copies.take(path, NOW + timedelta(hours=hour))
    store.close()
    assert [copy.taken.hour for copy in copies.find(path, LATER)] == [7, 6, 5]
    assert sorted(found.name for found in tmp_path.iterdir()) == [
        "state.db",
        *sorted(copy.path.name for copy in copies.find(path, LATER)),
        "state.db.lock",
    ]


async def test_copies_of_a_clock_that_was_ahead_count_as_the_oldest(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    store = Store(path)
    for number in range(KEPT):
        copies.take(path, NOW + timedelta(days=400, hours=number))
    write(store, "a")
    copies.take(path, NOW)
    store.close()
    kept = [copy.taken for copy in copies.find(path, NOW)]
    assert kept == [NOW, NOW + timedelta(days=400, hours=2), NOW + timedelta(days=400, hours=1)]
    assert copies.restore(path, NOW)[0].startswith("state.db.copy-20260102T030405Z")
    assert names(path) == ["a"]


async def test_a_copy_is_made_only_where_something_changed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    store = Store(path)
    clock = StoppedClock()
    clock.time = NOW
    made = Copies(store, clock)
    write(store, "a")
    made.keep()
    clock.time += timedelta(hours=1)
    made.keep()
    assert [copy.taken.hour for copy in copies.find(path, LATER)] == [3]
    write(store, "b")
    clock.time += timedelta(hours=1)
    made.keep()
    assert [copy.taken.hour for copy in copies.find(path, LATER)] == [5, 3]
    store.close()
    with closing(Store(path)) as opened_again:
        clock.time += timedelta(hours=1)
        Copies(opened_again, clock).keep()
    assert len(copies.find(path, LATER)) == 2


async def test_copies_are_made_while_the_store_is_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    store = Store(path)
    task = asyncio.ensure_future(Copies(store, SystemClock()).run(every=0.0))
    async with asyncio.timeout(60):
        for number in itertools.count():
            write(store, f"p-{number}")
            await store.settle()
            if len(copies.find(path, LATER)) == 2:
                break
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    store.close()
    assert len(names(copies.find(path, LATER)[0].path)) > len(names(copies.find(path, LATER)[1].path)) > 0


@pytest.mark.slow
async def test_a_copy_of_many_objects_costs_this_process_no_memory(tmp_path: Path) -> None:
    """Taken in this process, that of so many leaves 3 MiB behind for good."""

    store = Store(tmp_path / "state.db")
    for number in range(6000):
        store.create(StoreKey("pods", "default", f"p-{number}"), {"metadata": {"name": f"p-{number}"}, "x": "y" * 1000})
    await store.settle()
    before = resident_mib()
    await asyncio.to_thread(copies.take_apart, tmp_path / "state.db", NOW)
    store.close()
    assert (resident_mib() - before) < 3
    assert len(copies.find(tmp_path / "state.db", LATER)) == 1


def resident_mib() -> float:
    """Return the memory that this process uses now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def test_a_copy_that_was_begun_is_finished_before_the_cluster_ends(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    def unfinished() -> list[Path]:
        return list(tmp_path.glob("*.new"))

    store = Store(path)
    for number in range(3000):
        store.create(StoreKey("pods", "default", f"p-{number}"), {"metadata": {"name": f"p-{number}"}, "x": "y" * 999})
    await store.settle()
    task = asyncio.ensure_future(Copies(store, SystemClock()).run(every=0.0))
    while not unfinished():  # noqa: ASYNC110 - nothing tells when
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait([task])
    assert (len(copies.find(path, LATER)), unfinished()) == (1, [])
    store.close()


def test_a_damaged_file_never_replaces_its_last_good_copy(copied: Path) -> None:
    with closing(sqlite3.connect(copied)) as database, database:
        database.execute("UPDATE history SET value = x'7b7d' WHERE revision = 2")
    database.close()
    with pytest.raises(StoreError, match="the checksum of revision 2 is wrong"):
        copies.take(copied, NOW + timedelta(hours=1))
    assert [copy.taken for copy in copies.find(copied, LATER)] == [NOW]


async def test_what_prevents_a_copy_does_not_end_the_cluster(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    made = Copies(store, SystemClock())
    write(store, "a")
    (tmp_path / "state.db").write_bytes(b"damaged")
    made.keep()
    assert copies.find(tmp_path / "state.db", LATER) == []
    store.close()


def test_restoring_puts_the_newest_copy_in_place_and_keeps_the_file(copied: Path) -> None:
    damaged = b"damaged"
    copied.write_bytes(damaged)
    restored = copies.restore(copied, NOW + timedelta(minutes=20))
    assert restored == (
        "state.db.copy-20260102T030405Z (taken 2026-01-02 03:04:05 UTC, 0:20:00 ago)",
        copied.with_name("state.db.damaged-20260102T032405Z"),
    )
    assert copied.with_name("state.db.damaged-20260102T032405Z").read_bytes() == damaged
    assert copied.stat().st_mode & 0o777 == 0o600
    assert names(copied) == ["a"]


def test_a_missing_file_with_copies_is_refused_and_can_be_restored(copied: Path) -> None:
    copied.unlink()
    with pytest.raises(DamagedError, match="missing or empty, but it was there"):
        Store(copied)
    assert copies.restore(copied, NOW)[1] is None
    assert names(copied) == ["a"]


def test_a_damaged_copy_is_passed_over(copied: Path) -> None:
    newer = copied.with_name("state.db.copy-20260103T000000Z")
    newer.write_bytes(b"damaged too")
    copied.write_bytes(b"damaged")
    assert "20260102T030405Z" in copies.restore(copied, NOW)[0]


def test_without_a_good_copy_nothing_is_changed(copied: Path) -> None:
    for copy in copies.find(copied, LATER):
        copy.path.write_bytes(b"damaged too")
    copied.write_bytes(b"damaged")
    with pytest.raises(StoreError, match=r"state\.db: no copy can be restored: .*copy-20260102T030405Z"):
        copies.restore(copied, NOW)
    assert copied.read_bytes() == b"damaged"
    assert not copied.with_name("state.db.new").exists()


def test_a_running_cluster_is_not_restored(copied: Path) -> None:
    store = Store(copied)
    try:
        with pytest.raises(StoreError, match="in use by process"):
            copies.restore(copied, NOW)
    finally:
        store.close()
