"""Tests the handover of a lease between two managers, and unfinished work of the leader (R-MGR-3, R-ARC-1)."""

import asyncio
import time

import pytest
from tests.kubernetes.manager.groups import CheckedNamespace, space_with_groups
from tests.kubernetes.manager.replicas import LEASE_SECONDS, LONG_LEASE, until
from tests.kubernetes.manager.stream import Stream
from tests.kubernetes.manager.world import InstalledCluster

from kuberuntime.objects.resources import STATEFULSETS

pytestmark = pytest.mark.slow

SIZE = 2


async def await_other_holder(world: InstalledCluster, before: str) -> float:
    """Wait until the lease has a different holder. Return the duration in seconds."""
    begun = time.monotonic()

    async def changed() -> bool:
        return await world.holder() not in {before, ""}

    await until(changed, *world.replicas)
    return time.monotonic() - begun


async def test_stopped_leader_hands_over_immediately(world: InstalledCluster) -> None:
    first = await world.start("a", leaderElection=LONG_LEASE)
    await world.await_master(first)
    second = await world.start("b", leaderElection=LONG_LEASE)
    assert [await world.is_master(one) for one in (first, second)] == [True, False]
    space = await space_with_groups(world.client, "stopped-leader", replicas=2, size=SIZE)
    before = await world.holder()
    world.balancer.backends.remove(first.webhooks)
    stopping = asyncio.create_task(first.stop())
    await await_other_holder(world, before)
    assert await stopping < 10
    await space.scale(3)
    await space.await_ready("web", 3)
    await space.assert_whole("web", replicas=3, size=SIZE)
    assert await world.is_master(second)


async def test_killed_leader_leaves_a_complete_scale_up(
    world: InstalledCluster,
) -> None:
    first = await world.start("a")
    await world.await_master(first)
    await world.start("b")
    space = await space_with_groups(world.client, "killed-leader", replicas=3, size=SIZE)
    before = await world.holder()
    await space.scale(20)

    async def has_begun() -> bool:
        return len(await space.names(STATEFULSETS)) > 6

    await until(has_begun, *world.replicas, poll=0.05)
    first.kill()
    world.balancer.backends.remove(first.webhooks)
    assert await space.ready_groups("web") < 20
    waited = await await_other_holder(world, before)
    assert waited < 3 * LEASE_SECONDS, f"handed over after {waited:.2f} s"
    await space.await_ready("web", 20)
    await space.assert_whole("web", replicas=20, size=SIZE)


async def test_resumed_leader_does_not_write(world: InstalledCluster) -> None:
    """The resumed process briefly assumes that it leads. Its writes are blocked, and it waits for the lease."""
    first = await world.start("a")
    await world.await_master(first)
    second = await world.start("b")
    space = await space_with_groups(world.client, "frozen-leader", replicas=2, size=2)
    before = await world.holder()
    first.freeze()
    world.balancer.backends.remove(first.webhooks)
    await await_other_holder(world, before)
    await space.scale(4)
    await space.await_ready("web", 4)
    first.thaw()

    async def has_noticed() -> bool:
        return "leadership lost" in first.log.read_text()

    await until(has_noticed, first)
    await first.await_ready()
    assert [await world.is_master(one) for one in (first, second)] == [False, True]
    await space.assert_whole("web", replicas=4, size=2)


async def test_replacing_both_managers_does_not_reject_requests(world: InstalledCluster) -> None:
    """In a rolling update of the Deployment, a new manager becomes ready before an old manager stops."""
    old = [await world.start("a"), await world.start("b")]
    space = await CheckedNamespace(world.client, "rolling-update").open()
    stream = Stream(space)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stream.run())
        for index, replica in enumerate(old):
            await world.start(f"new-{index}")
            await stream.go_on(10)
            world.balancer.backends.remove(replica.webhooks)
            assert await replica.stop() < 10
            await stream.go_on(10)
        running.cancel()
    assert stream.refused == []
    await space.create_groups("web", replicas=1, size=2)
    await space.await_ready("web", 1)
