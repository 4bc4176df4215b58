"""Tests leftovers of earlier incarnations: slow garbage collection, reverted updates, and reused names."""

import asyncio

import pytest
from tests.fuzz.seeds import seeds
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.leaders import has_updated, images, played, roll, watch
from tests.simulation.workloads import groups, template

from kuberuntime.objects import meta
from kuberuntime.objects.resources import PODS, SERVICES
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from localkube.kubelet.processes.runner import ContainerSpec
from localkube.kubelet.processes.simulatedrunner import Program

OWN_SERVICES = {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}
SURGING = {
    "rolloutStrategy": {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 0, "maxSurge": 1},
    }
}


async def hold(world: SimulatedCluster, finalizers: list[str]) -> None:
    patch = {"metadata": {"finalizers": finalizers}}
    await world.patch(patch, "web-0", resource=SERVICES)


@played()
async def test_replaced_leader_gets_its_own_service(world: SimulatedCluster) -> None:
    """The service of the previous, late leader still exists when the new leader is ready (R-SVC-2)."""
    await world.bring_up(groups(replicas=1, size=2, **OWN_SERVICES))
    await hold(world, ["tests/late"])
    await world.delete("web-0", PODS)
    await world.ready()
    await hold(world, [])
    await world.ready()
    leaders, services = await world.uids(), await world.objects(SERVICES)
    owners = [meta.controller_of(service) for service in services]
    assert [owner and owner["uid"] for owner in owners] == [leaders["web-0"]]


@played()
async def test_deleted_service_of_a_group_is_recreated(world: SimulatedCluster) -> None:
    """The Go controller recreates the service only when the group changes (R-SVC-5)."""
    await world.bring_up(groups(replicas=2, size=2, **OWN_SERVICES))
    before = await world.uids(SERVICES)
    await world.delete("web-1", SERVICES)
    await world.ready()
    after = await world.uids(SERVICES)
    assert after.keys() == before.keys() == {"web-0", "web-1"}
    assert after["web-0"] == before["web-0"]
    assert after["web-1"] != before["web-1"]


def slow_to_start(spec: ContainerSpec) -> Program:
    return Program(start_delay=5.0)


@pytest.mark.parametrize("seed", seeds(2))
@played(script=slow_to_start)
async def test_reverted_update_keeps_the_surge_group(world: SimulatedCluster, seed: int) -> None:
    """If the new template were applied immediately, the starting surge group would be deleted (R-ROLL-10)."""
    await world.bring_up(groups(replicas=2, size=1, **SURGING))
    leaders = watch(world, ready=2)
    await roll(world, "app:2")
    await world.until_objects(PODS, lambda pods: leaders.births["web-1"] == 1)
    await asyncio.sleep(0.5)
    await roll(world, "app:1")
    await world.ready()
    assert await images(world) == {"app:1"}
    assert leaders.fewest is not None
    assert leaders.fewest >= 2


def half_broken(spec: ContainerSpec) -> Program:
    is_broken = spec.argv[-1] == "broken" and spec.env[labels.ENV_LEADER_ADDRESS].startswith("web-1.")
    return Program(start_error="no such model" if is_broken else "")


@played(script=half_broken)
async def test_reverted_update_does_not_wait_for_broken_groups(world: SimulatedCluster) -> None:
    """R-ROLL-7 counts such a group as permanently unavailable, so the Go controller stops the rollout."""
    lws = groups(replicas=3, size=1)
    lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] = "None"
    await world.bring_up(lws)
    leaders = watch(world, ready=3)
    breaking = template("app:2")
    breaking["spec"]["containers"][0]["command"] = ["sleep", "broken"]
    await world.edit(leaderWorkerTemplate={"workerTemplate": breaking})
    await world.until_objects(PODS, has_updated("app:2"))
    await world.until_objects(PODS, lambda pods: leaders.births["web-1"] == 1)
    await asyncio.sleep(5.0)
    await roll(world, "app:1")
    await world.at_rest()
    assert await images(world) == {"app:1"}
    (lws,) = await world.objects(LEADERWORKERSETS)
    assert meta.is_condition_true(lws, "Available")
    assert leaders.births == {"web-2": 2, "web-1": 2}
    assert leaders.fewest == 2
