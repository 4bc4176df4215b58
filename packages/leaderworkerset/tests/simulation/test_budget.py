"""Tests counts and evidence of groups with limited restarts in a simulated cluster."""

import asyncio
import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from tests.fuzz.seeds import seeds
from tests.simulation.cluster import Settings, SimulatedCluster, simulate, simulated
from tests.simulation.faults import STRIDE, Schedule
from tests.simulation.workloads import SLOW, groups, template

from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.restarts.retention import is_retained
from localkube.apiserver.storage.store import Change

STEPS = 8
MOST = 4
"""The maximum number of replicas. A schedule selects fewer."""


class Kept:
    """Checks the pods that are kept as evidence, and the restart counts, at every write."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.broken: list[str] = []
        self.seen: Counter[str] = Counter()

    def pod_changed(self, change: Change) -> None:
        """Check that a marked or kept pod belongs to an exhausted group that is no longer replaced."""
        pod = change.object
        if change.type != "DELETED" and groupname.is_exhausted(pod):
            self.seen["exhausted"] += 1
            if not is_retained(pod) and not meta.is_deleting(pod):
                self.broken.append(f"{meta.name(pod)} is exhausted, and nothing keeps it")

    def lws_changed(self, change: Change) -> None:
        """Check that no group exceeds its restart limit."""
        text = meta.annotations(change.object).get(labels.GROUP_RESTART_COUNTS, "{}")
        for key, count in json.loads(text).items():
            self.seen["counted"] += 1
            if not 0 < count <= self._limit:
                self.broken.append(f"group {key} used {count} restarts of {self._limit}")


async def recover(world: SimulatedCluster, random: Random, *, everything: bool = False) -> None:
    """Recover one or all exhausted groups."""
    found = [pod for pod in await world.objects(PODS) if groupname.is_exhausted(pod)]
    for pod in found if everything or not found else [random.choice(found)]:
        patch = {"metadata": {"annotations": {labels.RECOVER: "true"}}}
        try:
            await world.patch(patch, meta.name(pod), resource=PODS)
        except NotFoundError:  # the pod was released in the meantime
            continue


async def schedule(world: SimulatedCluster, random: Random, limit: int, identity: dict[str, Any]) -> None:
    """Change, fail, recover and kill in random order and partly concurrently.

    At the end, all groups are recovered.
    """
    lws = groups(replicas=3, size=2, **identity)
    lws["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = limit
    lws["metadata"]["annotations"] = {labels.RESTART_FIRST_DELAY: "1s", labels.RESTART_LONGEST_DELAY: "2s"}
    replicas = 3
    await world.bring_up(lws)
    for step in range(STEPS):
        if random.random() < 0.5:
            await world.at_rest()
        match random.choice(["scale", "roll", "fail", "fail", "fail", "recover", "kill"]):
            case "scale":
                # A Deployment does not continue its rollout if it is scaled to the replica count of its old
                # ReplicaSet.
                await world.at_rest()
                replicas = random.randrange(1, MOST)
                await world.edit(replicas=replicas)
            case "roll":
                await world.edit(leaderWorkerTemplate={"workerTemplate": template(f"app:{step}")})
            case "fail":
                await world.fail_any(random)
            case "recover":
                await recover(world, random)
            case "kill":
                await world.kill_manager("manager-0")
                world.start_manager("manager-0", SLOW)
    await world.at_rest()
    while [pod for pod in await world.objects(PODS) if groupname.is_exhausted(pod)]:
        await recover(world, random, everything=True)
        await world.at_rest()
    await world.ready()
    assert len(await world.objects(PODS)) == 2 * replicas


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("limit", [0, 1, 2])
@pytest.mark.parametrize("seed", seeds(1))
def test_restarts_are_bounded_and_evidence_is_kept(seed: int, limit: int, identity: str) -> None:
    """Restarts are limited, and evidence is kept (N-RB-1, N-RB-3 to N-RB-6, N-RB-13, N-RB-15)."""
    kept = Kept(limit)

    async def scenario(world: SimulatedCluster) -> None:
        world.observe(PODS, kept.pod_changed)
        world.observe(LEADERWORKERSETS, kept.lws_changed)
        await schedule(world, Random(f"{seed} {limit} {identity}"), limit, {"groupIdentity": identity})

    simulate(scenario, Settings(seed=seed, managers=(SLOW,), others=SLOW))
    assert kept.broken == []


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("delay", [0.0, 0.05, 0.3, 2.0])
@simulated(Settings(managers=(SLOW,), others=SLOW))
async def test_evidence_never_outlives_its_leaderworkerset(
    world: SimulatedCluster, delay: float, identity: str
) -> None:
    """Evidence is deleted with the set at any time, also if the set is recreated immediately (N-RB-5)."""
    lws = groups(replicas=2, size=2, groupIdentity=identity)
    lws["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = 0
    await world.bring_up(lws)
    await world.fail_any(Random(0))
    await asyncio.sleep(delay)
    await world.delete()
    await world.bring_up(lws)
    assert len(await world.objects(PODS)) == 4
    await world.delete()
    await world.until_objects(PODS, lambda pods: not pods)


@pytest.mark.long
@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
def test_restart_budget_survives_a_manager_that_dies_any_time(identity: str) -> None:
    """One restart is counted once. Then the group is kept, recovered and restarted (N-AT-19, N-RB-4, N-RB-5)."""

    async def life(world: SimulatedCluster) -> None:
        lws = groups(replicas=1, size=2, groupIdentity=identity)
        lws["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = 1
        await world.bring_up(lws)
        await world.fail_any(Random(0))
        await world.ready()
        (counted,) = await world.objects(LEADERWORKERSETS)
        text = meta.annotations(counted)[labels.GROUP_RESTART_COUNTS]
        assert [*json.loads(text).values()] == [1]
        await world.fail_any(Random(0))
        await world.until_objects(LEADERWORKERSETS, lambda found: meta.is_condition_true(found[0], "Degraded"))
        await recover(world, Random(0), everything=True)
        await world.ready()
        (anew,) = await world.objects(LEADERWORKERSETS)
        assert labels.GROUP_RESTART_COUNTS not in meta.annotations(anew)

    writes = len(simulate(life, Settings(managers=(Schedule(),))).trace.of("manager-0"))
    for last in range(1, writes + 1, STRIDE):
        simulate(life, Settings(managers=(Schedule(crash_after=last),)))
