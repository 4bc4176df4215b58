"""Tests moves in a simulated cluster. Nodes are closed while managers crash and requests fail (ADR 23).

In a second schedule groups also roll, fail, are scaled, and are requested to move.
"""

import asyncio
import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.simulation.checks.moves import Moves, MovesAmongOthers
from tests.simulation.cluster import Settings, simulate
from tests.simulation.faults import Schedule
from tests.simulation.schedules import lean, plantedmoves
from tests.simulation.schedules.kubelet import NODES
from tests.simulation.schedules.lean import LeanCluster
from tests.simulation.workloads import groups, template

from kuberuntime import timeouts
from kuberuntime.errors import ConflictError, InvalidError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.kinds.managedkinds import managed_kinds

REPLICAS = 4
SIZE = 2
STEPS = 8
SEEDS = range(int(os.environ.get("SEEDS", "1")))
LONG = 600.0
"""The virtual time in seconds in which every node must be drained."""


def moving(identity: str, limit: int) -> JSONObject:
    """Return a LeaderWorkerSet whose groups can be moved, up to the given number at once."""
    rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": limit, "maxSurge": 0}}
    lws = groups(replicas=REPLICAS, size=SIZE, groupIdentity=identity, rolloutStrategy=rolling)
    lws["metadata"]["annotations"] = {labels.MOVE_OFF_CLOSED_NODES: "on"}
    return lws


async def begin(world: LeanCluster, spec: JSONObject) -> None:
    """Start a manager and create the LeaderWorkerSet."""
    if meta.spec(spec)["groupIdentity"] == "Hash":
        await world.start_deployments()
    world.start_manager("manager-0", world.settings.managers[0])
    await world.bring_up(spec)


async def close_in_passing(world: LeanCluster, node: str, random: Random) -> None:
    """Cordon a node briefly."""
    await world.cordon(node)
    await asyncio.sleep(random.choice((0.0, 0.05, 1.0)))
    await world.cordon(node, unschedulable=False)


async def kill(world: LeanCluster, random: Random) -> None:
    """Occasionally kill or pause the manager."""
    for _ in range(random.choice((0, 1, 4))):
        await asyncio.sleep(random.choice((0.0, 0.1, 2.0)))
        if random.random() < 0.5:
            world.managers["manager-0"].crashed.set()
        else:
            world.managers["manager-0"].freeze(random.choice((0.5, 4.0)))


async def live(world: LeanCluster, random: Random, found: Moves, spec: JSONObject) -> None:
    """Close nodes.

    At the end they are empty, each of their groups moved once, no other group did, and nothing is left.
    """
    world.observe(PODS, found.pod_changed)
    await begin(world, spec)
    chosen = random.sample(NODES, random.choice((1, 2, 3)))
    closed, passing = chosen[:2], chosen[2:]
    must, may = found.on(*closed), found.on(*chosen)
    async with timeouts.within(LONG), asyncio.TaskGroup() as users:
        users.create_task(kill(world, random))
        for node in closed:
            users.create_task(world.cordon(node))
        for node in passing:
            users.create_task(close_in_passing(world, node, random))
    async with timeouts.within(LONG):
        while found.on(*closed):  # noqa: ASYNC110 - as an operator waits
            await asyncio.sleep(0.5)
    await world.ready()
    assert len(found.moved) == len({*found.moved})
    assert must <= {*found.moved} <= may
    for node in closed:
        await world.cordon(node, unschedulable=False)
    await asyncio.sleep(30)
    assert {*found.moved} <= may
    assert not [one for one in await world.objects(CONTROLLER_REVISIONS) if labels.RECREATIONS in str(one)]


def play(seed: int, identity: str, limit: int) -> Moves:
    """Play one schedule, and return the counts."""
    random = Random(f"{seed} {identity} {limit}")
    found = Moves(REPLICAS, SIZE, limit)
    faulty = Schedule(latency=(0.001, 0.02), rate=0.02)
    simulate(lambda world: live(world, random, found, moving(identity, limit)), settings(seed, faulty), lean.running)
    return found


def settings(seed: int, manager: Schedule) -> Settings:
    """Return settings with one manager whose maintenance feature is enabled."""
    return Settings(
        seed=seed,
        managers=(manager,),
        others=Schedule(latency=(0.001, 0.02)),
        kinds=managed_kinds(configured={names.MOVES: MaintenanceSettings()}),
    )


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_moves_keep_the_budget_and_each_group_moves_once(seed: int, limit: int, identity: str) -> None:
    """The actors close and open nodes, and crash (ADR 23)."""
    assert play(seed, identity, limit).broken == []


async def end_a_process(world: LeanCluster, random: Random, found: MovesAmongOthers) -> None:
    """Make a container of a random pod exit with an error."""
    found.disturbed()
    world.kubelet.restart(random.choice(sorted(await world.uids())))


async def mark_a_leader(world: LeanCluster, random: Random) -> str:
    """Request the move of a random group, and return the UID of its leader."""
    leader = random.choice([pod for pod in await world.objects(PODS) if groupname.is_leader(pod)])
    patch = {"metadata": {"uid": meta.uid(leader), "annotations": {labels.MOVE_GROUP: "true"}}}
    try:
        await world.patch(patch, meta.name(leader), resource=PODS)
    # the name is in use by a different pod, or the pod does not exist
    except (ConflictError, InvalidError, NotFoundError):
        return ""
    return meta.uid(leader)


async def live_among_others(world: LeanCluster, random: Random, found: MovesAmongOthers, spec: JSONObject) -> None:
    """Close and open nodes, start rollouts, fail pods, scale and request moves.

    At the end closed nodes are empty, and marked leaders are deleted.
    """
    world.observe(PODS, found.pod_changed)
    await begin(world, spec)
    closed, marked = set[str](), set[str]()
    for step in range(STEPS):
        match random.choice(["close", "close", "open", "roll", "fail", "scale", "mark", "kill"]):
            case "close" if len(closed) < len(NODES) - 1:
                closed.add(node := random.choice(NODES))
                await world.cordon(node)
            case "open" if closed:
                closed.remove(node := random.choice(sorted(closed)))
                await world.cordon(node, unschedulable=False)
            case "roll":
                await world.edit(leaderWorkerTemplate={"workerTemplate": template(f"app:{step}")})
            case "fail":
                await end_a_process(world, random, found)
            case "scale":
                # a Deployment that is scaled during a rollout might not continue it (docs/adr/0017)
                await world.at_rest()
                found.disturbed(replicas := random.randrange(3, REPLICAS + 2))
                await world.edit(replicas=replicas)
            case "mark":
                marked.add(await mark_a_leader(world, random))
            case "kill":
                await kill(world, random)
        await asyncio.sleep(random.choice((0.0, 0.05, 2.0, 90.0)))
    await world.ready()
    assert found.on(*closed) == set()
    assert not marked & set((await world.uids()).values())
    lws = await world.get(LEADERWORKERSETS, "web")
    assert not meta.is_condition_true(lws, "MoveInProgress")


def play_among_others(seed: int, identity: str, limit: int) -> MovesAmongOthers:
    """Play one schedule of moves among other events, and return the counts."""
    random = Random(f"among {seed} {identity} {limit}")
    seen: list[MovesAmongOthers] = []

    async def scenario(world: LeanCluster) -> None:
        seen.append(MovesAmongOthers(REPLICAS, SIZE, limit, world.clock.monotonic))
        spec = moving(identity, limit)
        spec["metadata"]["annotations"] |= {labels.RESTART_FIRST_DELAY: "1s", labels.RESTART_LONGEST_DELAY: "2s"}
        await live_among_others(world, random, seen[0], spec)

    simulate(scenario, settings(seed, Schedule(latency=(0.001, 0.02))), lean.running)
    return seen[0]


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_moves_rollouts_and_failures_share_one_budget(seed: int, limit: int, identity: str) -> None:
    """All moves share one limit, and every request is fulfilled at the end (ADR 23)."""
    assert play_among_others(seed, identity, limit).broken == []


@pytest.mark.long
@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize(
    "bug", [plantedmoves.moves_all_at_once, plantedmoves.never_moves, plantedmoves.forgets_who_is_away]
)
def test_planted_bug_is_found_among_rollouts_and_failures(bug: Callable[[], Any], identity: str) -> None:
    with bug():
        assert not all(_is_clean(play_among_others, seed, identity) for seed in range(10))


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("bug", [plantedmoves.moves_all_at_once, plantedmoves.never_moves])
def test_planted_move_bug_is_found(bug: Callable[[], Any], identity: str) -> None:
    with bug():
        assert not all(_is_clean(play, seed, identity) for seed in range(5))


def _is_clean(played: Callable[[int, str, int], Moves], seed: int, identity: str) -> bool:
    try:
        return not played(seed, identity, 1).broken
    except (AssertionError, TimeoutError, ExceptionGroup):
        return False
