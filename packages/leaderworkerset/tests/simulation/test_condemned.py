"""Tests that a failed group is unready until it is recreated, although its container has restarted."""

import asyncio
from collections.abc import Callable

import pytest
from tests.fuzz.seeds import seeds
from tests.simulation.cluster import Settings, SimulatedCluster, simulate
from tests.simulation.workloads import SLOW, groups

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.kubelet.processes.runner import ContainerSpec, Exit
from localkube.kubelet.processes.simulatedrunner import Program

DELAY = 1.0
"""The maximum time between the record of a failure and the status that includes it, with slow requests."""


def failing_worker() -> Callable[[ContainerSpec], Program]:
    """Return a script of processes. Workers exit after 12 s in all groups except the second started group."""
    groups_seen: list[str] = []

    def script(spec: ContainerSpec) -> Program:
        group = spec.env["LWS_GROUP_INDEX"]
        if spec.env["LWS_WORKER_INDEX"] == "0":
            return Program()
        groups_seen.extend({group} - {*groups_seen})
        return Program() if groups_seen.index(group) == 1 else Program(exits=(12.0, Exit(5)))

    return script


def waiting(records: list[JSONObject]) -> set[str]:
    """Return the UIDs of the leaders whose groups wait to be recreated."""
    annotations = [meta.annotations(record) for record in records]
    return {own[labels.RECREATED_LEADER] for own in annotations if own.get(labels.RECREATION_STATE) == "waiting"}


async def watch(world: SimulatedCluster, seconds: int) -> int:
    """Read the status each second, and return how often a group waited. Fail if it was counted as ready then."""
    samples = 0
    for _ in range(seconds):
        before = waiting(await world.objects(CONTROLLER_REVISIONS))
        await asyncio.sleep(DELAY)
        after = waiting(await world.objects(CONTROLLER_REVISIONS))
        living = {meta.uid(pod) for pod in await world.objects(PODS) if not meta.is_deleting(pod)}
        if before & after & living:
            samples += 1
            lws = await world.get(LEADERWORKERSETS, "web")
            assert not meta.is_condition_true(lws, "Available"), f"{meta.status(lws)}\n{world.trace}"
            assert int(meta.status(lws).get("readyReplicas") or 0) < 2, f"{meta.status(lws)}\n{world.trace}"
            for deployment in await world.objects(DEPLOYMENTS):
                assert int(meta.status(deployment).get("readyReplicas") or 0) < 2
    return samples


@pytest.mark.parametrize("identity", ["Ordinal", "Hash"])
@pytest.mark.parametrize("seed", seeds(1))
def test_group_that_waits_for_its_recreation_is_not_ready(seed: int, identity: str) -> None:
    async def scenario(world: SimulatedCluster) -> None:
        await world.create(groups(replicas=2, size=2, groupIdentity=identity))
        assert await watch(world, 60) > 8

    simulate(scenario, Settings(seed=seed, managers=(SLOW,), others=SLOW, script=failing_worker()))
