"""Tests that evictions never exceed the disruption budget, and that no drain waits forever."""

import asyncio
import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.fuzz.seeds import first_tier
from tests.simulation.checks.evictions import Evictions
from tests.simulation.cluster import Settings, SimulatedCluster, simulate
from tests.simulation.evictors import cordon_in_passing, drain, evict_all, evict_any, kubectl_drain
from tests.simulation.faults import Schedule
from tests.simulation.schedules import planteddisruption
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime import timeouts
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.disruption.disruptionsettings import STARTING, DisruptionSettings
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.kinds.managedkinds import managed_kinds
from localkube.controllers.nodes.nodes import NodeSettings
from localkube.kubelet.processes.runner import Exit

SIZE = 2
SEEDS = range(int(os.environ.get("SEEDS", "1")))
LONG = 1500.0
"""The maximum virtual time in seconds of a drain."""

WATCHING = DisruptionSettings(budget="rollout")
TAKING_TURNS = DisruptionSettings(budget="rollout", watches_nodes=False)


def protected(budget: str, **spec: Any) -> JSONObject:
    """Return a LeaderWorkerSet with a budget, whose groups are recreated quickly after repeated failures."""
    lws = groups(replicas=4, size=SIZE, **spec)
    lws["metadata"]["annotations"] = {
        labels.DISRUPTION_BUDGET: budget,
        labels.DO_NOT_DISRUPT: STARTING,
        labels.RESTART_FIRST_DELAY: "1s",
        labels.RESTART_LONGEST_DELAY: "2s",
    }
    return lws


async def disturb(world: SimulatedCluster, random: Random) -> int:
    """Fail groups, roll out, scale, and kill managers. Return the replicas at the end."""
    replicas = 4
    for step in range(random.choice((0, 1, 3))):
        await asyncio.sleep(random.choice((0.0, 0.3, 5.0)))
        match random.choice(("fail", "roll", "scale", "kill", "kill", "cut")):
            case "fail" if processes := sorted(world.runner.processes):
                world.runner.stop_process(random.choice(processes), Exit(1))
            case "roll":
                await world.edit(leaderWorkerTemplate={"workerTemplate": template(f"app:{step + 2}")})
            case "scale":
                replicas = random.choice((3, 5))
                await world.edit(replicas=replicas)
            case "kill":
                world.managers["manager-0"].crashed.set()
            case _:
                world.managers["manager-0"].freeze(random.choice((0.5, 4.0)))
    return replicas


async def live(world: SimulatedCluster, random: Random, found: Evictions, spec: JSONObject) -> None:
    """Evict pods and drain nodes during other events. At the end, undo all changes and complete all drains."""
    follow(world, found)
    await world.bring_up(spec)
    nodes = random.sample(range(4), random.choice((0, 1, 2, 4)))
    async with timeouts.within(LONG), asyncio.TaskGroup() as users:
        disturbed = users.create_task(disturb(world, random))
        users.create_task(evict_any(world, random, random.choice((0, 4, 8, 40))))
        for index in nodes[:2]:
            users.create_task(drain(world, f"node-{index}", random))
        for index in nodes[2:]:
            users.create_task(cordon_in_passing(world, f"node-{index}", random))
    await world.ready()
    found.broken += found.at_rest(disturbed.result())
    await end(world, is_deleted=random.random() < 0.5)


async def end(world: SimulatedCluster, *, is_deleted: bool) -> None:
    """Delete the LeaderWorkerSet or disable its protection, and check that all budgets are deleted."""
    if is_deleted:
        await world.delete()
    else:
        off = {"metadata": {"annotations": {labels.DISRUPTION_BUDGET: "off"}}}
        await world.patch(off)
    await world.until_objects(POD_DISRUPTION_BUDGETS, lambda budgets: not budgets)


def follow(world: SimulatedCluster, found: Evictions) -> None:
    """Register the check for every change."""
    world.observe(LEADERWORKERSETS, found.set_changed)
    world.observe(PODS, found.pod_changed)
    world.observe(POD_DISRUPTION_BUDGETS, found.budget_changed)


def play(seed: int, settings: DisruptionSettings, identity: str, *, limit: int, rate: float = 0.02) -> Evictions:
    """Play one schedule, and return the counts."""
    random = Random(f"{seed} {settings} {identity} {limit}")
    found = Evictions(limit, SIZE, has_keys=identity == "Hash")
    faulty = Schedule(latency=(0.001, 0.02), rate=rate)
    simulate(
        lambda world: live(world, random, found, protected(str(limit), groupIdentity=identity)),
        Settings(
            seed=seed,
            managers=(faulty,),
            others=SLOW,
            nodes=NodeSettings(count=4),
            kinds=managed_kinds(configured={names.DISRUPTION: settings}),
        ),
    )
    return found


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_evictions_keep_the_budget_and_every_drain_ends(seed: int, limit: int, identity: str) -> None:
    """The limits apply to all evictions, drains, failures, rollouts and manager crashes (ADR 22)."""
    assert play(seed, WATCHING, identity, limit=limit).broken == []


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
def test_drain_ends_without_a_watch_of_nodes(identity: str) -> None:
    """An unannounced drain also completes. Budgets change in a stable state, so they are not checked (ADR 22)."""

    async def scenario(world: SimulatedCluster) -> None:
        follow(world, found)
        await world.create(protected("1", groupIdentity=identity))
        await world.until_objects(
            PODS, lambda pods: len(pods) == 8 and all(meta.is_condition_true(one, "Ready") for one in pods)
        )
        async with timeouts.within(LONG):
            await drain(world, "node-1", Random(1))

    found = Evictions(1, SIZE, has_keys=identity == "Hash")
    simulate(
        scenario,
        Settings(
            managers=(SLOW,),
            others=SLOW,
            nodes=NodeSettings(count=4),
            kinds=managed_kinds(configured={names.DISRUPTION: TAKING_TURNS}),
        ),
    )
    assert (found.broken, found.granted > 0) == ([], True)


HUNTS = 12
"""The number of seeds in the search for a bug.

The order of string sets differs between processes, and so do the results.
"""


async def hunt(world: SimulatedCluster, found: Evictions, identity: str) -> None:
    """Create the conditions under which bugs become visible.

    All pods are evicted again and again while a node of a closed group is cordoned, and a forgotten cordoned node
    exists next to a node that is being drained.
    """
    follow(world, found)
    await world.create(protected("1", groupIdentity=identity))
    await world.ready()
    for node in ("node-0", "node-3"):
        async with asyncio.TaskGroup() as users:
            users.create_task(evict_all(world, times=40))
            await world.cordon(node)
        await world.cordon(node, unschedulable=False)
        await world.ready()
    assert found.granted
    await world.cordon("node-0")
    async with timeouts.within(LONG):
        await drain(world, "node-2", Random(1))
    await world.cordon("node-0", unschedulable=False)
    await world.ready()
    found.broken += found.at_rest(4)
    await end(world, is_deleted=False)


def hunted(identity: str, seed: int = 1) -> Evictions:
    """Return the counts."""
    found = Evictions(1, SIZE, has_keys=identity == "Hash")
    simulate(
        lambda world: hunt(world, found, identity),
        Settings(
            managers=(SLOW,),
            others=SLOW,
            nodes=NodeSettings(count=4),
            kinds=managed_kinds(configured={names.DISRUPTION: WATCHING}),
            seed=seed,
        ),
    )
    return found


@pytest.mark.long
@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
def test_search_for_bugs_finds_none(identity: str) -> None:
    assert hunted(identity).broken == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("bug", "identity"),
    [
        (planteddisruption.opens_before_the_closed_one_is_proved, "Ordinal"),
        (planteddisruption.forgets_who_is_missing, "Hash"),
        (planteddisruption.never_opens, "Ordinal"),
        (planteddisruption.never_takes_turns, "Ordinal"),
        (planteddisruption.leaves_budgets, "Ordinal"),
    ],
)
def test_planted_disruption_bug_is_found(bug: Callable[[], Any], identity: str) -> None:
    with bug():
        assert not all(_is_clean(identity, seed) for seed in range(HUNTS))


def _is_clean(identity: str, seed: int) -> bool:
    try:
        return not hunted(identity, seed).broken
    except (AssertionError, TimeoutError):
        return False


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("seed", first_tier(range(4)))
def test_kubectl_drain_ends_when_group_names_return(seed: int, identity: str) -> None:
    """kubectl evicts pods by name. A group that lost a pod has moved with the same names before the next attempt."""

    async def scenario(world: SimulatedCluster) -> None:
        lws = protected("1", groupIdentity=identity)
        if seed % 2:
            lws["metadata"]["annotations"][labels.MOVE_OFF_CLOSED_NODES] = "on"
        await world.bring_up(lws)
        async with timeouts.within(LONG):
            await kubectl_drain(world, "node-0")
            await kubectl_drain(world, "node-1")
        await world.ready()

    simulate(
        scenario,
        Settings(
            seed=seed,
            managers=(SLOW,),
            others=SLOW,
            nodes=NodeSettings(count=3),
            kinds=managed_kinds(configured={names.DISRUPTION: WATCHING, names.MOVES: MaintenanceSettings()}),
        ),
    )
