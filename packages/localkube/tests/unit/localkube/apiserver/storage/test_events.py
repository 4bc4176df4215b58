"""Tests events. Both API groups serve them from one store, and they expire after one hour."""

import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.localkube.apiserver.harness import Api, StoppedClock, run

from localkube.apiserver.storage.eventttl import STORED_AS, EventTTL
from localkube.apiserver.storage.store import Store, StoreKey

NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
CORE = "/api/v1/namespaces/default/events"
SERIES = {"series": {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000000Z"}}


def event(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "reportingController": "leaderworkerset",
        "reportingInstance": "leaderworkerset-host",
        "action": "Create",
        "reason": "GroupsProgressing",
        "type": "Normal",
        "note": "Created leader statefulset demo",
        "regarding": {"kind": "LeaderWorkerSet", "namespace": "default", "name": "demo", "uid": "1"},
    }


async def test_event_is_served_in_both_groups(api: Api) -> None:
    async with api.watch(CORE, fieldSelector="involvedObject.name=demo") as watch:
        created = await api.create(NEW, event("a"))
        assert (created.code, created["apiVersion"], created["note"]) == (
            201,
            "events.k8s.io/v1",
            "Created leader statefulset demo",
        )
        seen = await watch.next()
        assert seen is not None
        assert (seen["object"]["apiVersion"], seen["object"]["message"]) == ("v1", created["note"])
    core = (await api.get(CORE, fieldSelector="involvedObject.name=demo,reason=GroupsProgressing"))["items"]
    new = (await api.get(NEW))["items"]
    assert (core[0]["message"], new[0]["note"]) == (created["note"], created["note"])
    assert core[0]["metadata"]["uid"] == new[0]["metadata"]["uid"]
    patched = await api.patch(f"{NEW}/a", SERIES)
    assert (patched.code, patched["series"]["count"]) == (200, 2)


async def test_event_expires_an_hour_after_its_last_write(api: Api) -> None:
    async def left() -> list[str]:
        return [item["metadata"]["name"] for item in (await api.get(NEW))["items"]]

    await api.create(NEW, event("a"))
    await api.create(NEW, event("b"))
    api.clock.move(1800)
    assert (await api.patch(f"{NEW}/a", SERIES)).code == 200
    api.clock.move(1801)
    await api.create(NEW, event("c"))
    assert await left() == ["a", "c"]


@pytest.mark.parametrize("days", [400, -400])
async def test_clock_jump_neither_deletes_nor_keeps_events(api: Api, days: float) -> None:
    async def left() -> list[str]:
        return [item["metadata"]["name"] for item in (await api.get(NEW))["items"]]

    await api.create(NEW, event("a"))
    api.clock.jump(days * 86400)
    await api.create(NEW, event("b"))
    assert await left() == ["a", "b"]
    api.clock.jump(-days * 86400)
    api.clock.move(3601)
    await api.create(NEW, event("c"))
    assert await left() == ["c"]


def test_events_of_an_earlier_process_expire(tmp_path: Path) -> None:
    async def before(api: Api) -> None:
        await api.create(NEW, event("a"))

    async def after(api: Api) -> None:
        api.clock.move(3601)
        await api.create(NEW, event("b"))
        assert [item["metadata"]["name"] for item in (await api.get(NEW))["items"]] == ["b"]

    run(before, Store(tmp_path / "cluster.db"))
    run(after, Store(tmp_path / "cluster.db"))


async def test_number_of_events_is_bounded() -> None:
    store = Store()
    store.subscribe(EventTTL(store, StoppedClock(), limit=10).observe)
    await write_events(store, range(23))
    await store.wait_committed()
    assert store.count(STORED_AS) == 10
    assert store.get(StoreKey(STORED_AS, "default", "a-pod-of-some-group-22.18a2b3c4d5e6f708")) is not None
    store.close()


async def test_excess_events_of_an_earlier_process_are_deleted(tmp_path: Path) -> None:
    store = Store(tmp_path / "cluster.db")
    for number in range(20):
        key = StoreKey(STORED_AS, "default", f"e-{number}")
        metadata = {"name": key.name, "namespace": "default", "creationTimestamp": "2026-01-02T03:04:05Z"}
        store.create(key, {"metadata": metadata})
    await store.wait_committed()
    EventTTL(store, StoppedClock(), limit=5).load()
    await store.wait_committed()
    assert store.count(STORED_AS) == 5
    assert store.get(StoreKey(STORED_AS, "default", "e-19")) is not None
    store.close()


async def write_events(store: Store, numbers: range) -> None:
    for number in numbers:
        key = StoreKey(STORED_AS, "default", f"a-pod-of-some-group-{number}.18a2b3c4d5e6f708")
        metadata = {"name": key.name, "namespace": "default", "creationTimestamp": "2026-01-02T03:04:05Z"}
        store.create(key, {"metadata": metadata, "note": "x" * 300})
        await store.wait_committed()


@pytest.mark.slow
async def test_event_expiry_needs_little_memory() -> None:
    store, clock = Store(), StoppedClock()
    store.subscribe(EventTTL(store, clock).observe)
    await write_events(store, range(100))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await write_events(store, range(100, 2100))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert store.count(STORED_AS) == 2100
    assert (after - before) / 2000 < 40
    store.close()


async def test_rewritten_events_are_kept() -> None:
    store, clock = Store(), StoppedClock()
    store.subscribe(EventTTL(store, clock, limit=10).observe)
    await write_events(store, range(10))
    [first, *_] = [msgspec.json.decode(row) for row in store.list(STORED_AS)]
    store.update(StoreKey(STORED_AS, "default", first["metadata"]["name"]), first, first)
    await store.wait_committed()
    await write_events(store, range(10, 14))
    await store.wait_committed()
    left = {msgspec.json.decode(row)["metadata"]["name"].split(".")[0][20:] for row in store.list(STORED_AS)}
    assert left == {"0", *(str(number) for number in range(5, 14))}
    store.close()
