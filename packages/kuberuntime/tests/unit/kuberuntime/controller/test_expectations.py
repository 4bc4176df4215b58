"""Tests that the barrier delays a key until the caches contain its writes, for a limited time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from testkit.fakes import SmallServer

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.controller.expectations import PATIENCE, Expectations
from kuberuntime.controller.writes import ObjectRemoval, ObjectWrite, Write
from kuberuntime.objects.meta import UID, ObjectKey, ResourceVersion
from kuberuntime.objects.resources import PODS, SERVICES, STATEFULSETS

pytestmark = pytest.mark.virtual_time

LWS = ObjectKey("default", "lws")
OTHER = ObjectKey("default", "other")
A = ObjectKey("default", "a")


@dataclass
class Rig:
    """Two kinds with one informer each, and a barrier for them."""

    pods: SmallServer
    sets: SmallServer
    barrier: Expectations
    released: list[tuple[ObjectKey, float]]

    async def settle(self) -> None:
        await asyncio.sleep(0.5)

    def holds(self, key: ObjectKey = LWS) -> bool:
        return self.barrier.is_waiting(key)


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    pods, sets = SmallServer(), SmallServer()
    pods.put("a")
    informers = [Informer(Client(pods), PODS), Informer(Client(sets), STATEFULSETS)]
    released: list[tuple[ObjectKey, float]] = []
    barrier = Expectations(informers, lambda key: released.append((key, asyncio.get_running_loop().time())))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informer.run()) for informer in informers]
        for informer in informers:
            await informer.wait_synced()
        yield Rig(pods, sets, barrier, released)
        barrier.close()
        for task in tasks:
            task.cancel()


def written(version: int, key: ObjectKey = A) -> ObjectWrite:
    return ObjectWrite(PODS, key, ResourceVersion(str(version)))


async def test_unseen_write_holds_its_key_until_it_is_seen() -> None:
    async with rig() as r:
        r.barrier.expect(LWS, [written(2)])
        await r.settle()
        assert (r.holds(LWS), r.holds(OTHER)) == (True, False)
        r.pods.put("a")
        await r.settle()
        assert not r.holds()
        assert [key for key, _ in r.released] == [LWS]


@pytest.mark.parametrize("how", ["another object", "a bookmark", "its own deletion"])
async def test_event_at_that_version_or_later_ends_the_hold(how: str) -> None:
    async with rig() as r:
        r.barrier.expect(LWS, [written(2)])
        match how:
            case "another object":
                r.pods.put("b")
            case "a bookmark":
                r.pods.version = 2
                r.pods.bookmark()
            case _:
                r.pods.remove("a")
        await r.settle()
        assert not r.holds()


NOTHING_TO_WAIT_FOR: dict[str, Write] = {
    "a no-op apply": written(1),
    "a kind without informer": ObjectWrite(SERVICES, A, ResourceVersion("999")),
    "a deletion of what the cache does not have": ObjectRemoval(PODS, OTHER, UID("u")),
    "a deletion of what the cache has under another UID": ObjectRemoval(PODS, A, UID("older")),
}


@pytest.mark.parametrize("write", NOTHING_TO_WAIT_FOR.values(), ids=NOTHING_TO_WAIT_FOR)
async def test_write_that_was_already_seen_holds_nothing(write: Write) -> None:
    async with rig() as r:
        r.barrier.expect(LWS, [write])
        assert not r.holds()
        assert r.released == []


@pytest.mark.parametrize("uid", [UID("u1"), None], ids=["with UID", "without UID"])
@pytest.mark.parametrize("how", ["it is gone", "it is terminating"])
async def test_deletion_holds_its_key_until_the_cache_shows_it(uid: UID | None, how: str) -> None:
    async with rig() as r:
        r.barrier.expect(LWS, [ObjectRemoval(PODS, A, uid)])
        r.pods.put("b")  # a newer version of the object does not prove the deletion
        await r.settle()
        assert r.holds()
        if how == "it is gone":
            r.pods.remove("a")
        else:
            r.pods.put("a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        await r.settle()
        assert not r.holds()


async def test_key_is_held_until_writes_of_all_kinds_are_seen() -> None:
    async with rig() as r:
        r.barrier.expect(LWS, [written(2), written(3), ObjectWrite(STATEFULSETS, A, ResourceVersion("1"))])
        r.pods.put("a")
        r.sets.put("a")
        await r.settle()
        assert r.holds()
        r.pods.put("a")
        await r.settle()
        assert not r.holds()
        assert len(r.released) == 1


async def test_mute_watch_is_relisted_after_the_patience() -> None:
    async with rig() as r:
        started = asyncio.get_running_loop().time()
        r.pods.mute()
        r.pods.put("a")
        r.barrier.expect(LWS, [written(2)])
        await asyncio.sleep(PATIENCE + 1)
        [(key, at)] = r.released
        assert key == LWS
        assert PATIENCE <= at - started < PATIENCE + 0.1


async def test_hold_of_an_opaque_version_ends_by_a_relist() -> None:
    async with rig() as r:
        r.barrier.expect(LWS, [ObjectWrite(PODS, A, ResourceVersion("abc"))])
        r.pods.put("b")
        await r.settle()
        assert r.holds()
        await asyncio.sleep(PATIENCE)
        assert not r.holds()


async def test_key_is_held_while_the_server_is_unavailable() -> None:
    async with rig() as r:
        r.pods.is_down = True
        r.pods.cut()
        r.pods.put("a")
        r.barrier.expect(LWS, [written(2)])
        await asyncio.sleep(300)
        assert r.holds()
        r.pods.is_down = False
        await asyncio.sleep(31)
        assert not r.holds()


async def test_many_held_keys_of_a_mute_watch_cost_one_relist() -> None:
    async with rig() as r:
        before = len(r.pods.requests)
        r.pods.mute()
        for number in range(1000):
            r.pods.put("a")
            r.barrier.expect(ObjectKey("default", str(number)), [written(number + 2)])
        await asyncio.sleep(PATIENCE + 1)
        assert len(r.released) == 1000
        assert len(r.pods.requests) == before + 1


async def test_closing_cancels_all_holds_without_a_release() -> None:
    async with rig() as r:
        r.barrier.expect(LWS, [written(9)])
        r.barrier.close()
        assert not r.holds()
        await asyncio.sleep(2 * PATIENCE)
        assert r.released == []


async def test_release_does_not_depend_on_the_order_of_the_kinds() -> None:
    async with rig() as r:
        r.barrier.expect(LWS, [ObjectRemoval(PODS, A, UID("u1")), ObjectWrite(STATEFULSETS, A, ResourceVersion("1"))])
        r.barrier.expect(OTHER, [written(2)])
        r.sets.put("a")
        r.pods.put("b")
        await r.settle()
        assert (r.holds(LWS), r.holds(OTHER)) == (True, False)
        r.pods.remove("a")
        await r.settle()
        assert [key for key, _ in r.released] == [OTHER, LWS]
