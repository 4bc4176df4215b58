"""Tests that either all pods of a group are bound to nodes, or none, with the built-in gate."""

from collections import Counter
from collections.abc import Mapping

import pytest
from tests.permissions import missing, needs_of
from tests.simulation.cluster import Settings, SimulatedCluster, simulate, simulated
from tests.simulation.faults import Schedule
from tests.simulation.test_kueue import kueue, queued
from tests.simulation.workloads import SLOW, groups

from kuberuntime.client.transport import Request
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.gang.gate import BUILT_IN, is_gated
from leaderworkerset.kinds.managedkinds import managed_kinds
from localkube.apiserver.storage.store import Change
from localkube.controllers.nodes.nodes import NodeSettings


def settings(nodes: int, schedule: Schedule = SLOW, cpu: str = "2") -> Settings:
    """Return a cluster with small nodes, whose manager removes gates."""
    return Settings(
        managers=(schedule,),
        others=SLOW,
        kinds=managed_kinds(BUILT_IN.name),
        nodes=NodeSettings(count=nodes, capacity={"cpu": cpu}),
    )


def asking(replicas: int, size: int, cpu: str = "1", **spec: object) -> JSONObject:
    """Return the LeaderWorkerSet `web`, whose pods request `cpu`."""
    lws = groups(replicas=replicas, size=size, **spec)
    (container,) = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": cpu}}
    return lws


def bound(pods: list[JSONObject]) -> Counter[str]:
    """Return the number of pods of each group that are bound to a node."""
    return Counter(meta.labels(pod)[labels.GROUP_INDEX] for pod in pods if meta.spec(pod).get("nodeName"))


def gated(pods: list[JSONObject]) -> Counter[str]:
    """Return the number of pods of each group that wait for the gate."""
    return Counter(meta.labels(pod)[labels.GROUP_INDEX] for pod in pods if is_gated(pod))


class Watched:
    """A pod loses its gate only when all pods of its group exist."""

    def __init__(self, world: SimulatedCluster) -> None:
        self.groups: dict[str, set[str]] = {}
        self.early: list[str] = []
        world.observe(PODS, self._changed)

    def _changed(self, change: Change) -> None:
        pod = change.object
        members = self.groups.setdefault(meta.annotations(pod)[labels.GANG_GROUP], set())
        if change.type != "DELETED":
            members.add(meta.name(pod))
            if not is_gated(pod) and len(members) < int(meta.annotations(pod)[labels.SIZE]):
                self.early.append(meta.name(pod))


async def resize_nodes(world: SimulatedCluster, cpu: str) -> None:
    """Set the CPU capacity of every node."""
    patch = {"status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": cpu}}}
    for node in (await world.client.list(NODES)).items:
        await world.client.patch(NODES, ObjectKey("", meta.name(node)), patch, kind="merge", subresource="status")


def test_third_group_starts_when_nodes_have_room() -> None:
    """Two groups run, and all pods of the third group wait. In the meantime, there are no writes."""

    async def scenario(world: SimulatedCluster) -> None:
        watched = Watched(world)
        await world.create(asking(replicas=3, size=4))
        await world.until_objects(PODS, lambda pods: sorted(bound(pods).values()) == [4, 4] and len(pods) == 12)
        await world.at_rest()
        pods = await world.objects(PODS)
        assert sorted(bound(pods).values()) == [4, 4]
        assert list(gated(pods).values()) == [4]

        await resize_nodes(world, "3")
        await world.ready()
        assert sorted(bound(await world.objects(PODS)).values()) == [4, 4, 4]
        assert watched.early == []

    chosen = settings(nodes=4)
    trace = simulate(scenario, chosen).trace
    written = [Request(entry.verb, entry.object, body=b"{}") for entry in trace.of("manager-0")]
    assert any(request.method == "PATCH" and "/pods/" in request.path for request in written)
    assert missing(chosen.kinds.permissions, (need for request in written for need in needs_of(request))) == []


@simulated(settings(nodes=2))
async def test_scaled_down_group_frees_nodes_for_a_waiting_group(world: SimulatedCluster) -> None:
    await world.create(asking(replicas=1, size=4))
    await world.until_objects(PODS, lambda pods: bound(pods) == {"0": 4})
    other = asking(replicas=1, size=3)
    await world.create(other | {"metadata": other["metadata"] | {"name": "other"}})
    await world.until_objects(PODS, lambda pods: gated(pods) == {"0": 3} and len(pods) == 7)
    await world.edit(replicas=0)
    await world.ready("other")


@pytest.mark.parametrize("restart", ["RecreateGroupOnPodRestart", "None"])
@simulated(settings(nodes=5))
async def test_gated_groups_survive_failures_rollouts_and_scaling(world: SimulatedCluster, restart: str) -> None:
    """A recreated pod waits for capacity like all other pods, but its group is admitted first."""
    watched = Watched(world)
    lws = asking(replicas=2, size=3)
    lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] = restart
    await world.bring_up(lws)
    await world.fail("web-1-2")
    await world.ready()
    await world.delete("web-0-1", PODS)
    await world.ready()
    template = asking(1, 1)["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["spec"]["containers"][0]["image"] = "app:2"
    await world.edit(leaderWorkerTemplate={"workerTemplate": template})
    await world.ready()
    await world.edit(replicas=3)
    await world.ready()
    pods = await world.objects(PODS)
    assert bound(pods) == {"0": 3, "1": 3, "2": 3}
    assert not gated(pods)
    assert restart == "None" or watched.early == []


@simulated(settings(nodes=1))
async def test_group_of_one_pod_is_not_gated(world: SimulatedCluster) -> None:
    await world.create(asking(replicas=3, size=1))
    await world.until_objects(PODS, lambda pods: len(pods) == 3 and len(bound(pods)) == 2)
    assert not gated(await world.objects(PODS))


@simulated(settings(nodes=3))
async def test_pod_that_waits_for_quota_reserves_no_space(world: SimulatedCluster) -> None:
    """A pod that Kueue also blocks is not counted as starting. Capacity is not reserved for it (R-KQ-161)."""
    async with kueue(world, quota=1) as one:
        await world.create(queued_asking(replicas=2, size=3))
        await world.until_objects(PODS, lambda pods: bound(pods) == {"0": 3} and gated(pods) == {"1": 3})
        one.quota = 2
        await world.until_objects(PODS, lambda pods: bound(pods) == {"0": 3, "1": 3} and not gated(pods))


def queued_asking(replicas: int, size: int) -> JSONObject:
    """Return a queued LeaderWorkerSet that requests CPU."""
    return asking(replicas, size) | {"metadata": queued()["metadata"]}


@pytest.mark.parametrize("crash", [4, 6, 8, 10, 12])
@simulated(lambda crash: settings(nodes=4, schedule=Schedule(latency=SLOW.latency, crash_after=crash)))
async def test_gates_open_although_managers_die_at_any_write(world: SimulatedCluster, crash: int) -> None:
    """The manager also crashes between gate removals of one group. The next manager removes the remaining gates."""
    await world.bring_up(asking(replicas=2, size=4))
    assert bound(await world.objects(PODS)) == {"0": 4, "1": 4}


@simulated(settings(nodes=1))
async def test_leaderworkerset_can_opt_out_of_the_gate(world: SimulatedCluster) -> None:
    lws = asking(replicas=1, size=3)
    annotations: Mapping[str, str] = {labels.GANG_SCHEDULER: "none"}
    await world.create(lws | {"metadata": lws["metadata"] | {"annotations": dict(annotations)}})
    await world.until_objects(PODS, lambda pods: bound(pods) == {"0": 2} and len(pods) == 3)
    status = meta.status(await world.client.get(LEADERWORKERSETS, ObjectKey("default", "web")))
    assert status.get("readyReplicas", 0) == 0
