"""Tests that complete groups are never recreated in a simulated cluster."""

from collections.abc import Callable
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from tests.fuzz.seeds import seeds
from tests.simulation.cluster import Settings, SimulatedCluster, simulate
from tests.simulation.workloads import SLOW, groups

from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.completion import runtocompletion
from leaderworkerset.core.restarts import retention
from localkube.apiserver.storage.store import Change
from localkube.kubelet.processes.runner import Exit

REPLICAS = 2
ROUNDS = 10
"""The number of times that all leaders exit at the end. Some groups may be waiting for their recreation."""


class Ends:
    """Records the groups that were complete, and later changes to them."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.complete: dict[str, str] = {}
        """The UIDs of the completed leaders, by name."""
        self.left: set[str] = set()
        """The UIDs of the remaining pods at the end."""

    def pod_changed(self, change: Change) -> None:
        """Check that a completed leader is kept, and that no other leader has the same name."""
        pod = change.object
        name, uid = meta.name(pod), meta.uid(pod)
        if not groupname.is_leader(pod):
            return
        if change.type != "DELETED" and groupname.group_result(pod) is not None:
            self.complete[name] = uid
        if name in self.complete and (change.type == "DELETED" or self.complete[name] != uid):
            self.broken.append(f"{name} was complete, and {change.type} {uid} follows")


async def end_leaders(world: SimulatedCluster) -> None:
    """Make every running leader exit with code 0."""
    for pod in filter(groupname.is_leader, await world.objects(PODS)):
        for status in meta.status(pod).get("containerStatuses") or []:
            process = str(status.get("containerID")).removeprefix("process://")
            if process in world.runner.processes:
                world.runner.stop_process(process, Exit(0))


async def schedule(world: SimulatedCluster, random: Random) -> None:
    """Make pods exit with code 0 or an error, and crash managers, in random order.

    At the end, every leader exits with code 0.
    """
    lws = groups(replicas=REPLICAS, size=2)
    lws["metadata"]["annotations"] = {
        labels.RUN_TO_COMPLETION: "true",
        labels.RESTART_FIRST_DELAY: "1s",
        labels.RESTART_LONGEST_DELAY: "2s",
    }
    await world.bring_up(lws)
    for _ in range(6):
        if random.random() < 0.5:
            await world.at_rest()
        match random.choice(["fail", "end", "end", "kill"]):
            case "fail":
                end(world, random, 1)
            case "end":
                end(world, random, 0)
            case "kill":
                await world.kill_manager("manager-0")
                world.start_manager("manager-0", SLOW)
    for _ in range(ROUNDS):
        await world.at_rest()
        if await is_complete(world):
            return
        await end_leaders(world)


def end(world: SimulatedCluster, random: Random, code: int) -> None:
    """Make a random pod exit."""
    if processes := sorted(world.runner.processes):
        world.runner.stop_process(random.choice(processes), Exit(code))


async def is_complete(world: SimulatedCluster) -> bool:
    (lws,) = await world.objects(LEADERWORKERSETS)
    return meta.is_condition_true(lws, "Complete")


def play(seed: int) -> Ends:
    ends = Ends()

    async def scenario(world: SimulatedCluster) -> None:
        world.observe(PODS, ends.pod_changed)
        await schedule(world, Random(seed))
        assert ends.broken or await is_complete(world)
        ends.left = {meta.uid(pod) for pod in await world.objects(PODS)}

    simulate(scenario, Settings(seed=seed, managers=(SLOW,), others=SLOW))
    return ends


@pytest.mark.parametrize("seed", seeds(1))
def test_completed_group_is_never_recreated(seed: int) -> None:
    ends = play(seed)
    assert ends.broken == []
    assert len(ends.complete) == REPLICAS
    assert ends.left == set(ends.complete.values())


def deletes_without_a_mark() -> Any:
    """Delete the leader of a complete group as if the group had failed."""
    return patch.object(runtocompletion, "mark_finished", lambda leader, end: retention.metadata_patch(leader, {}))


def forgets_its_mark() -> Any:
    """Treat a complete group as running after its leader is marked."""
    return patch.object(runtocompletion, "mark_finished", lambda leader, end: retention.release_pod(leader))


@pytest.mark.long
@pytest.mark.parametrize("bug", [deletes_without_a_mark, forgets_its_mark])
def test_planted_completion_bugs_are_found(bug: Callable[[], Any]) -> None:
    with bug(), pytest.raises(AssertionError):
        assert play(0).broken == []
