"""Tests managers that are killed with SIGKILL at any time. Each requested change is performed exactly once.

`KILLS=200` in the environment kills that often (docs/reference/simulation.md).
"""

import asyncio
import os
from random import Random
from typing import Final

import pytest
from testkit.clusters.kubernetes import KubernetesCluster
from tests.controlplane.audit import WRITES, described
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.killing import EACH, Killer, Load, watched
from tests.kubernetes.manager.refusals import CONFLICT, unexplained
from tests.kubernetes.manager.world import InstalledCluster

pytestmark = pytest.mark.slow

KILLS: Final = int(os.environ.get("KILLS") or 2)
CREATED: Final = 201
CREATION: Final = "create statefulsets"


async def test_killed_managers_leave_no_trace(world: InstalledCluster) -> None:
    """Each leader is created exactly as often as requested. This determines the rest of the state."""
    await world.await_master(await world.start("a"))
    await world.start("b")
    space = await CheckedNamespace(world.client, "killed-managers").open()
    mark = world.audit.mark()
    async with watched(space) as births:
        load = Load(space, KubernetesCluster(world.plane.kubeconfig), min(KILLS, EACH))
        killer = Killer(world, Random(KILLS))
        killing = asyncio.create_task(killer.run(KILLS))
        await load.begin()
        while not killing.done() or not load.rounds:
            await load.round()
        await killing
        await world.rest()
        assert await load.state() == load.expected()
        assert await load.images() == load.expected_images()
        assert births.counts() == load.wanted
        assert births.doubled() == []
    events = [event for event in world.audit.events(mark) if event["verb"] in WRITES]
    codes = [event["responseStatus"].get("code") for event in events if described(event) == CREATION]
    assert codes.count(CREATED) <= births.worker_sets()
    logs = [line for replica in world.replicas for line in replica.log.read_text().splitlines()]
    assert unexplained(events, logs, killer.moments) == []
    print(  # noqa: T201 - for the page
        f"{len(killer.moments)} kills, {load.rounds} rounds, {len(events)} writes;"
        f" of {len(codes)} creations of workers {codes.count(CONFLICT)} refused"
    )
