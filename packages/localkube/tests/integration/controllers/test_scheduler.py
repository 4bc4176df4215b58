"""Tests scheduling to simulated nodes on the embedded API server."""

from pathlib import Path
from typing import Any

import pytest
from tests.integration.controllers.world import NAMESPACE, ControlledServer, cluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import EVENTS, NODES, PODS
from localkube.controllers.nodes.nodeoptions import parse_label
from localkube.controllers.nodes.nodes import NodeSettings

pytestmark = pytest.mark.slow

TWO_RACKS = NodeSettings(count=4, labels=(parse_label("rack=r{i//2}"),), capacity={"nvidia.com/gpu": "8"})


async def create_pod(
    world: ControlledServer, name: str, labels: dict[str, str] | None = None, **spec: Any
) -> JSONObject:
    """Create a pod."""
    containers = [{"name": "main", "image": "x"}]
    head = {"name": name, "namespace": NAMESPACE, "labels": labels or {}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": {"containers": containers} | spec}
    return await world.client.create(PODS, pod)


def gpus(number: int) -> list[JSONObject]:
    """Return a container that requests GPUs."""
    return [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(number)}}}]


async def until_bound(world: ControlledServer, name: str) -> str:
    """Wait until a pod is assigned to a node. Return the node name."""
    pods = await world.until(
        PODS, lambda pods: any(meta.name(pod) == name and meta.spec(pod).get("nodeName") for pod in pods)
    )
    return next(str(pod["spec"]["nodeName"]) for pod in pods if meta.name(pod) == name)


async def until_refused(world: ControlledServer, name: str) -> str:
    """Wait until a pod reports the reason why it is not scheduled. Return the message."""

    def message(pod: JSONObject) -> str:
        condition = meta.find_condition(pod, "PodScheduled") or {}
        return str(condition.get("message") or "") if condition.get("reason") == "Unschedulable" else ""

    pods = await world.until(PODS, lambda pods: any(meta.name(pod) == name and message(pod) for pod in pods))
    return next(message(pod) for pod in pods if meta.name(pod) == name)


async def test_unschedulable_pod_has_a_reason_and_is_retried(tmp_path: Path) -> None:
    async with cluster(tmp_path, NodeSettings(count=2, capacity={"nvidia.com/gpu": "8"})) as world:
        world.start_kubelet()
        for name in ("a", "b"):
            await create_pod(world, name, containers=gpus(8))
            await until_bound(world, name)
        await create_pod(world, "c", containers=gpus(4))
        refusal = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
        assert await until_refused(world, "c") == refusal
        events = await world.until(EVENTS, lambda found: any(e["reason"] == "FailedScheduling" for e in found))
        assert refusal in [event["note"] for event in events]
        await world.client.delete(PODS, ObjectKey(NAMESPACE, "b"))
        await until_bound(world, "c")
        pod = await world.get(PODS, "c")
        assert meta.is_condition_true(pod, "PodScheduled")


async def test_changed_node_causes_a_new_scheduling_attempt(world: ControlledServer) -> None:
    await create_pod(world, "a", nodeSelector={"disk": "fast"})
    assert "node affinity/selector" in await until_refused(world, "a")
    await world.patch(NODES, "node-0", {"metadata": {"labels": {"disk": "fast"}}})
    assert await until_bound(world, "a") == "node-0"


async def test_gated_pods_and_pods_of_other_schedulers_wait(world: ControlledServer) -> None:
    await create_pod(world, "gated", schedulingGates=[{"name": "example.com/gate"}])
    await create_pod(world, "foreign", schedulerName="volcano")
    await create_pod(world, "plain")
    await until_bound(world, "plain")
    pods = {meta.name(pod): pod for pod in await world.until(PODS, lambda pods: len(pods) == 3)}
    assert not meta.spec(pods["gated"]).get("nodeName")
    assert not meta.spec(pods["foreign"]).get("nodeName")
    await world.patch(PODS, "gated", {"spec": {"schedulingGates": None}})
    await until_bound(world, "gated")


async def test_exclusive_groups_are_placed_in_separate_racks(tmp_path: Path) -> None:
    async with cluster(tmp_path, TWO_RACKS) as world:
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        for group in ("a", "b", "c"):
            own = {"key": "group", "operator": "In", "values": [group]}
            other = [{"key": "group", "operator": "Exists"}, own | {"operator": "NotIn"}]
            near = {required: [{"topologyKey": "rack", "labelSelector": {"matchExpressions": [own]}}]}
            far = {required: [{"topologyKey": "rack", "labelSelector": {"matchExpressions": other}}]}
            affinity = {"podAffinity": near, "podAntiAffinity": far}
            for number in range(3):
                await create_pod(world, f"{group}-{number}", {"group": group}, affinity=affinity)
        racks: dict[str, set[str]] = {}
        for group in ("a", "b"):
            for number in range(3):
                node = await world.client.get(NODES, ObjectKey("", await until_bound(world, f"{group}-{number}")))
                racks.setdefault(group, set()).add(meta.labels(node)["rack"])
        assert sorted(map(sorted, racks.values())) == [["r0"], ["r1"]]
        assert await until_refused(world, "c-0") == (
            "0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules."
        )


async def test_pods_of_a_deleted_node_are_removed(tmp_path: Path) -> None:
    async with cluster(tmp_path, NodeSettings(count=2)) as world:
        await create_pod(world, "a", nodeSelector={"kubernetes.io/hostname": "node-1"})
        await until_bound(world, "a")
        await world.client.delete(NODES, ObjectKey("", "node-1"))
        await world.until_named(PODS)


async def test_pods_of_an_unknown_node_are_removed(world: ControlledServer) -> None:
    await create_pod(world, "stranded", nodeName="ghost")
    await create_pod(world, "settled", nodeName="node-0")
    await world.until_named(PODS, "settled")
