"""Moves in a simulated cluster: nodes are closed, some of them in passing, while managers die and requests fail (ADR 23)."""

import asyncio
import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.simulation.checks.moves import Moves
from tests.simulation.cluster import Settings, World, simulate
from tests.simulation.evictors import set_cordoned
from tests.simulation.faults import Schedule
from tests.simulation.schedules import plantedmoves
from tests.simulation.workloads import groups

from kuberuntime import timeouts
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from leaderworkerset.api import labels
from leaderworkerset.core.maintenance.maintenancesettings import MaintenanceSettings
from leaderworkerset.kinds.managed import OptIns, managed
from localkube.controllers.nodes.nodes import NodeSettings

REPLICAS = 6
SIZE = 2
NODES = 5
SEEDS = range(int(os.environ.get("SEEDS", "1")))
LONG = 600.0
"""Virtual seconds in which every node is emptied."""


def moving(identity: str, limit: int) -> JSONObject:
    """Return a LeaderWorkerSet whose groups move, so many at once."""
    rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": limit, "maxSurge": 0}}
    lws = groups(replicas=REPLICAS, size=SIZE, groupIdentity=identity, rolloutStrategy=rolling)
    lws["metadata"]["annotations"] = {labels.MOVE_OFF_CLOSED_NODES: "on"}
    return lws


async def close_in_passing(world: World, node: str, random: Random) -> None:
    """Cordon a node, and open it again soon."""
    await set_cordoned(world, node, cordoned=True)
    await asyncio.sleep(random.choice((0.0, 0.05, 1.0)))
    await set_cordoned(world, node, cordoned=False)


async def kill(world: World, random: Random) -> None:
    """Kill or freeze the manager now and then."""
    for _ in range(random.choice((0, 1, 4))):
        await asyncio.sleep(random.choice((0.0, 0.1, 2.0)))
        if random.random() < 0.5:
            world.managers["manager-0"].crashed.set()
        else:
            world.managers["manager-0"].freeze(random.choice((0.5, 4.0)))


async def live(world: World, random: Random, found: Moves, spec: JSONObject) -> None:
    """Close nodes; in the end they are empty, each group there was moved once, no other one was, and nothing stays."""
    world.observe(PODS, found.pod_changed)
    await world.create(spec)
    await world.ready()
    chosen = [f"node-{index}" for index in random.sample(range(NODES), random.choice((1, 2, 3)))]
    closed, passing = chosen[:2], chosen[2:]
    must, may = found.on(*closed), found.on(*chosen)
    async with timeouts.within(LONG), asyncio.TaskGroup() as users:
        users.create_task(kill(world, random))
        for node in closed:
            users.create_task(set_cordoned(world, node, cordoned=True))
        for node in passing:
            users.create_task(close_in_passing(world, node, random))
    async with timeouts.within(LONG):
        while found.on(*closed):  # noqa: ASYNC110 - as an operator waits
            await asyncio.sleep(0.5)
    await world.ready()
    assert len(found.moved) == len({*found.moved})
    assert must <= {*found.moved} <= may
    for node in closed:
        await set_cordoned(world, node, cordoned=False)
    await asyncio.sleep(30)
    assert {*found.moved} <= may
    assert not [one for one in await world.objects(CONTROLLER_REVISIONS) if labels.RECREATIONS in str(one)]


def play(seed: int, identity: str, limit: int) -> Moves:
    """Play one schedule; return what was counted."""
    random = Random(f"{seed} {identity} {limit}")
    found = Moves(REPLICAS, SIZE, limit)
    faulty = Schedule(latency=(0.001, 0.02), rate=0.02)
    simulate(
        lambda world: live(world, random, found, moving(identity, limit)),
        Settings(
            seed=seed,
            managers=(faulty,),
            others=Schedule(latency=(0.001, 0.02)),
            nodes=NodeSettings(count=NODES),
            kinds=managed(opted=OptIns(maintenance=MaintenanceSettings())),
        ),
    )
    return found


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_more_groups_are_away_than_may_be_and_each_moves_once(seed: int, limit: int, identity: str) -> None:
    """ADR 23, whoever closes nodes, opens them again, and dies."""
    assert play(seed, identity, limit).broken == []


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("bug", [plantedmoves.moves_all_at_once, plantedmoves.never_moves])
def test_a_planted_bug_is_found(bug: Callable[[], Any], identity: str) -> None:
    with bug():
        assert not all(_is_clean(seed, identity) for seed in range(5))


def _is_clean(seed: int, identity: str) -> bool:
    try:
        return not play(seed, identity, 1).broken
    except (AssertionError, TimeoutError, ExceptionGroup):
        return False
