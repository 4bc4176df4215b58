"""Tests that only groups that lost a worker while no manager was running are recreated."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest
from tests.fuzz.seeds import first_tier, seeds
from tests.simulation.cluster import Settings, SimulatedCluster, simulate
from tests.simulation.faults import Schedule
from tests.simulation.workloads import SLOW, groups

from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.restarts import missingworkers
from localkube.kubelet.processes.simulatedrunner import Program

SIZE = 3
MANAGER = "manager-0"
SOON = missingworkers.DRIFT.total_seconds() + 1.0
"""The time in seconds after the last status from which a loss is detected.

Timestamps have a resolution of one second.
"""

NO_EDIT: Final[Mapping[str, Any]] = MappingProxyType({})


def play(
    absence: Callable[[SimulatedCluster], Awaitable[None]],
    *,
    annotation: str | None = None,
    policy: str = "RecreateGroupOnPodRestart",
    seed: int,
    edit: Mapping[str, Any] = NO_EDIT,
    age: float = missingworkers.SKEW.total_seconds(),
    backoff: str = "on",
) -> set[str]:
    """Make groups ready, optionally edit them, run `absence` without a manager, and return the replaced pods.

    With `annotation` the counts of restarts have this value meanwhile, and until the next manager has run for a while.
    """
    replaced: set[str] = set()

    async def scenario(world: SimulatedCluster) -> None:
        lws = groups(replicas=3, size=SIZE)
        lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] = policy
        lws["metadata"]["annotations"] = {labels.RESTART_BACKOFF: backoff}
        await world.bring_up(lws)
        if edit:
            await world.edit(**edit)
            await world.ready()
        await asyncio.sleep(age)
        before = await world.uids()
        if annotation is not None:
            await annotate(world, annotation)
            await world.at_rest()
            assert not meta.is_condition_true(await world.get(LEADERWORKERSETS, "web"), "Available")
        await world.kill_manager(MANAGER)
        await absence(world)
        world.start_manager(MANAGER, Schedule())
        if annotation is not None:
            await world.at_rest()
            await annotate(world, None)
        await world.ready()
        after = await world.uids()
        assert set(after) == set(before)
        replaced.update(name for name in after if after[name] != before[name])

    simulate(scenario, Settings(seed=seed, managers=(SLOW,), others=SLOW, script=lambda _: Program(start_delay=2)))
    return replaced


async def annotate(world: SimulatedCluster, counts: str | None) -> None:
    """Write the restart counts."""
    change = {"metadata": {"annotations": {labels.GROUP_RESTART_COUNTS: counts}}}
    await world.patch(change)


async def lose_a_worker(world: SimulatedCluster) -> None:
    """Delete a worker, and wait until its replacement exists."""
    old = (await world.uids())["web-1-2"]
    await world.delete("web-1-2", PODS)
    await world.until_objects(
        PODS, lambda pods: any(p["metadata"]["name"] == "web-1-2" for p in pods if p["metadata"]["uid"] != old)
    )


async def lose_a_worker_at_the_end(world: SimulatedCluster) -> None:
    """Delete a worker whose replacement does not exist when the manager starts."""
    await world.delete("web-1-2", PODS)


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart"])
@pytest.mark.parametrize("absence", [lose_a_worker, lose_a_worker_at_the_end])
def test_worker_deleted_while_no_manager_runs_recreates_group(
    absence: Callable[[SimulatedCluster], Awaitable[None]], policy: str, seed: int
) -> None:
    assert play(absence, policy=policy, seed=seed) == {"web-1", "web-1-1", "web-1-2"}


@pytest.mark.parametrize("absence", [lose_a_worker, lose_a_worker_at_the_end])
def test_worker_deleted_while_a_set_is_rejected_recreates_group(
    absence: Callable[[SimulatedCluster], Awaitable[None]],
) -> None:
    """The worker is deleted while no manager is running. At first, the next manager cannot read the set."""
    assert play(absence, annotation="unreadable", seed=1) == {"web-1", "web-1-1", "web-1-2"}


def test_rejected_set_does_not_lose_complete_groups() -> None:
    assert play(nothing, annotation="unreadable", seed=1) == set()


@pytest.mark.parametrize("seed", first_tier(seeds(2)))
@pytest.mark.parametrize("backoff", ["on", "off"])
@pytest.mark.parametrize("absence", [lose_a_worker, lose_a_worker_at_the_end])
def test_worker_lost_soon_after_all_were_ready_recreates_group(
    absence: Callable[[SimulatedCluster], Awaitable[None]], backoff: str, seed: int
) -> None:
    """The timestamp of the last status is from the API server, so the managers' clocks have no effect."""
    assert play(absence, seed=seed, age=SOON, backoff=backoff) == {"web-1", "web-1-1", "web-1-2"}


@pytest.mark.parametrize("seed", first_tier(seeds(4)))
@pytest.mark.parametrize("backoff", ["on", "off"])
@pytest.mark.parametrize("absence", [lose_a_worker, lose_a_worker_at_the_end])
def test_worker_lost_while_another_group_starts_recreates_group(
    absence: Callable[[SimulatedCluster], Awaitable[None]], backoff: str, seed: int
) -> None:
    """The status reports two of three groups as ready, and one of these groups is unchanged."""

    async def scenario(world: SimulatedCluster) -> None:
        lws = groups(replicas=3, size=SIZE)
        lws["metadata"]["annotations"] = {labels.RESTART_BACKOFF: backoff}
        await world.bring_up(lws)
        before = await world.uids()
        await world.delete("web-0-1", PODS)
        await world.until_objects(LEADERWORKERSETS, lambda found: meta.status(found[0]).get("readyReplicas") == 2)
        await world.until_objects(
            PODS, lambda pods: all(meta.is_deleting(pod) for pod in pods if meta.uid(pod) == before["web-0"])
        )
        await world.kill_manager(MANAGER)
        await asyncio.sleep(SOON)
        await absence(world)
        world.start_manager(MANAGER, Schedule())
        await world.ready()
        after = await world.uids()
        assert {name for name in after if after[name] == before[name]} == {"web-2", "web-2-1", "web-2-2"}

    simulate(
        scenario,
        Settings(seed=seed, managers=(SLOW,), others=SLOW, script=lambda _: Program(start_delay=2, term=1.0)),
    )


@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("delay", [0.0, 0.018, 0.024, 0.03, 0.1])
def test_manager_that_dies_at_two_losses_recreates_both_groups(delay: float, seed: int) -> None:
    """The status reports a group as lost only after the deletion of its leader has started."""

    async def scenario(world: SimulatedCluster) -> None:
        lws = groups(replicas=3, size=SIZE)
        await world.bring_up(lws)
        await asyncio.sleep(SOON)
        before = await world.uids()
        await asyncio.gather(*(world.delete(name, PODS) for name in ("web-0-1", "web-1-2")))
        await asyncio.sleep(delay)
        await world.kill_manager(MANAGER)
        await asyncio.sleep(SOON)
        world.start_manager(MANAGER, Schedule())
        await world.ready()
        after = await world.uids()
        assert {name for name in after if after[name] == before[name]} == {"web-2", "web-2-1", "web-2-2"}

    simulate(
        scenario,
        Settings(seed=seed, managers=(SLOW,), others=SLOW, script=lambda _: Program(start_delay=2, term=1.0)),
    )


async def nothing(world: SimulatedCluster) -> None:
    """Advance the virtual time."""
    await world.at_rest()


@pytest.mark.parametrize("age", [0, missingworkers.SKEW.total_seconds()])
@pytest.mark.parametrize(
    "edit",
    [
        NO_EDIT,
        {"startupPolicy": "LeaderReady", "replicas": 4},
        {"leaderWorkerTemplate": {"size": 4}},
        {"leaderWorkerTemplate": {"size": 2}},
        {"replicas": 4},
    ],
    ids=["as created", "workers after their leader", "larger groups", "smaller groups", "a group more"],
)
def test_starting_manager_recreates_no_complete_group(edit: Mapping[str, Any], age: float) -> None:
    assert play(nothing, seed=1, edit=edit, age=age) == set()


def test_worker_is_replaced_alone_without_a_restart_policy() -> None:
    assert play(lose_a_worker, policy="None", seed=1) == {"web-1-2"}
