"""Tests namespaces, volume claims, endpoint slices and nodes on the embedded API server."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.integration.controllers.world import NAMESPACE, ControlledServer, cluster

from kuberuntime.clock import SystemClock
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    ENDPOINT_SLICES,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICES,
)
from localkube import wellknown
from localkube.controllers.nodes.nodeoptions import parse_label, parse_taint
from localkube.controllers.nodes.nodes import NodeSettings, ensure_nodes

pytestmark = pytest.mark.slow


def build_claim(name: str, **spec: Any) -> JSONObject:
    """Build a volume claim of 1 GiB."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    head = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": head, "spec": wanted | spec}


def build_pod(name: str, labels: dict[str, str], **spec: Any) -> JSONObject:
    """Build a pod with one container."""
    containers = [{"name": "main", "image": "x", "ports": [{"name": "http", "containerPort": 8080}]}]
    head = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": {"containers": containers} | spec}


async def until_bound(world: ControlledServer, name: str) -> JSONObject:
    """Wait until a volume claim is bound."""
    found = await world.until(
        PERSISTENT_VOLUME_CLAIMS,
        lambda found: any(meta.name(one) == name and meta.status(one).get("phase") == "Bound" for one in found),
    )
    return next(one for one in found if meta.name(one) == name)


async def test_namespace_is_deleted_with_its_contents(world: ControlledServer) -> None:
    await world.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    head: JSONObject = {"name": "held", "namespace": "team", "finalizers": ["example.com/hold"]}
    await world.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head})
    await world.client.delete(NAMESPACES, ObjectKey("", "team"))
    message = "Some resources are remaining: configmaps has 1 resource instances"
    await world.until(
        NAMESPACES,
        lambda found: any(
            (meta.find_condition(one, "NamespaceContentRemaining") or {}).get("message") == message for one in found
        ),
    )
    with pytest.raises(ForbiddenError, match="being terminated"):
        await world.client.create(
            CONFIG_MAPS,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late", "namespace": "team"}},
        )
    change: JSONObject = {"metadata": {"finalizers": []}}
    await world.client.patch(CONFIG_MAPS, ObjectKey("team", "held"), change, kind="merge")
    await world.until(NAMESPACES, lambda found: "team" not in map(meta.name, found))


async def test_claim_has_a_directory_that_is_deleted_with_it(world: ControlledServer, tmp_path: Path) -> None:
    await world.client.create(PERSISTENT_VOLUME_CLAIMS, build_claim("data"))
    claim = await until_bound(world, "data")
    assert claim["status"]["capacity"] == {"storage": "1Gi"}
    volume = await world.get(PERSISTENT_VOLUMES, claim["spec"]["volumeName"])
    directory = tmp_path / volume["metadata"]["name"]
    assert volume["spec"]["hostPath"]["path"] == str(directory)
    await asyncio.to_thread(directory.mkdir)
    mounting = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    await world.client.create(PODS, build_pod("user", {}, volumes=mounting))
    await world.until(PODS, lambda pods: bool(meta.spec(pods[0]).get("nodeName")) if pods else False)
    await world.client.delete(PERSISTENT_VOLUME_CLAIMS, ObjectKey(NAMESPACE, "data"))
    await world.client.delete(PODS, ObjectKey(NAMESPACE, "user"), grace_period=0)
    await world.until_named(PERSISTENT_VOLUMES)
    assert not await asyncio.to_thread(directory.exists)


EPHEMERAL: JSONObject = {
    "volumeClaimTemplate": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
}


async def test_ephemeral_volume_has_a_claim_owned_by_its_pod(world: ControlledServer) -> None:
    pod = build_pod("user", {}, volumes=[{"name": "v", "ephemeral": EPHEMERAL}])
    first = await world.client.create(PODS, pod)
    claim = await until_bound(world, "user-v")
    assert meta.labels(claim) == {"a": "b"}
    assert (meta.controller_of(claim) or {}).get("uid") == meta.uid(first)
    await world.until(PODS, lambda pods: bool(meta.spec(pods[0]).get("nodeName")) if pods else False)
    await world.client.delete(PODS, ObjectKey(NAMESPACE, "user"), grace_period=0)
    second = await world.client.create(PODS, pod)
    await world.until(
        PERSISTENT_VOLUME_CLAIMS,
        lambda found: any((meta.controller_of(one) or {}).get("uid") == meta.uid(second) for one in found),
    )
    await until_bound(world, "user-v")


async def test_claim_of_a_different_object_is_not_used(world: ControlledServer) -> None:
    await world.client.create(PERSISTENT_VOLUME_CLAIMS, build_claim("user-v"))
    await until_bound(world, "user-v")
    await world.client.create(PODS, build_pod("user", {}, volumes=[{"name": "v", "ephemeral": EPHEMERAL}]))
    words = "was not created for pod"
    await world.until(
        PODS,
        lambda pods: any(words in str((meta.find_condition(one, "PodScheduled") or {}).get("message")) for one in pods),
    )


async def test_pending_claim_binds_the_first_volume_that_fits(world: ControlledServer) -> None:
    await world.client.create(PERSISTENT_VOLUME_CLAIMS, build_claim("data", storageClassName=""))
    for name, size in (("tiny", "1Mi"), ("fitting", "2Gi")):
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "hostPath": {"path": "/srv"},
        }
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
        await world.client.create(PERSISTENT_VOLUMES, volume)
    assert (await until_bound(world, "data"))["spec"]["volumeName"] == "fitting"


@pytest.mark.parametrize(
    ("name", "reason", "note"),
    [
        ("fast", "ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found'),
        ("", "FailedBinding", "no persistent volumes available for this claim and no storage class is set"),
    ],
)
async def test_claim_without_a_provisioner_has_an_event(
    world: ControlledServer, name: str, reason: str, note: str
) -> None:
    await world.client.create(PERSISTENT_VOLUME_CLAIMS, build_claim("data", storageClassName=name))
    events = await world.until(EVENTS, lambda found: any(event["reason"] == reason for event in found))
    assert note in [event["note"] for event in events]
    claim = await world.get(PERSISTENT_VOLUME_CLAIMS, "data")
    assert meta.status(claim)["phase"] == "Pending"


async def test_endpoint_slices_follow_the_pods_of_a_service(world: ControlledServer) -> None:
    world.start_kubelet()
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "clusterIP": "None",
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }
    await world.client.create(SERVICES, service)
    await world.until_named(ENDPOINT_SLICES, "web-0")
    pod = build_pod("web-0", {"app": "web"}, hostname="web-0", subdomain="web")
    await world.client.create(PODS, pod)
    [one] = await world.until(ENDPOINT_SLICES, lambda found: bool(found[0].get("endpoints")))
    [endpoint] = one["endpoints"]
    assert endpoint["hostname"] == "web-0"
    assert endpoint["addresses"] == ["10.0.0.1"]
    assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert one["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    await world.client.delete(SERVICES, ObjectKey(NAMESPACE, "web"))
    await world.until_named(ENDPOINT_SLICES)


async def test_nodes_equal_the_settings_and_are_written_once(tmp_path: Path) -> None:
    settings = NodeSettings(
        count=3,
        labels=(parse_label("rack=r{i//2}"),),
        capacity={"nvidia.com/gpu": "8"},
        taints=(parse_taint("gpu=yes:NoSchedule"),),
    )
    async with cluster(tmp_path, settings) as world:
        nodes = await world.until_named(NODES, "node-0", "node-1", "node-2")
        assert [meta.labels(node)["rack"] for node in nodes] == ["r0", "r0", "r1"]
        assert [meta.status(node)["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8"] * 3
        assert all(meta.is_condition_true(node, "Ready") for node in nodes)
        await ensure_nodes(world.client, settings, SystemClock())
        again = await world.client.list(NODES)
        assert sorted(map(meta.resource_version, again.items)) == sorted(map(meta.resource_version, nodes))
        await ensure_nodes(world.client, NodeSettings(count=1), SystemClock())
        [node] = await world.until(NODES, lambda found: len(found) == 1)
        assert "rack" not in meta.labels(await world.get(NODES, "node-0"))
        assert not meta.spec(await world.get(NODES, meta.name(node))).get("taints")


async def test_nodes_of_an_earlier_version_are_adopted_or_removed(tmp_path: Path) -> None:
    async with cluster(tmp_path, NodeSettings(count=2)) as world:
        for name in ("node-0", "node-1"):
            former = {wellknown.SIMULATED: None, wellknown.FORMER_SIMULATED: "true"}
            await world.patch(NODES, name, {"metadata": {"labels": former}})
        own = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-9"}}
        await world.client.create(NODES, own)
        await ensure_nodes(world.client, NodeSettings(count=1), SystemClock())
        kept = await world.get(NODES, "node-0")
        assert meta.labels(kept)[wellknown.SIMULATED] == "true"
        assert wellknown.FORMER_SIMULATED not in meta.labels(kept)
        await world.until_named(NODES, "node-0", "node-9")


def patient(name: str, seconds: int | None) -> JSONObject:
    key = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return build_pod(name, {}, nodeName="node-0", tolerations=[key | limit])


async def set_ready(world: ControlledServer, status: str) -> None:
    node = await world.get(NODES, "node-0")
    conditions = [{"type": "Ready", "status": status}]
    await world.client.update(
        NODES, node | {"status": meta.status(node) | {"conditions": conditions}}, subresource="status"
    )


async def test_pods_leave_an_unready_node_after_their_toleration(world: ControlledServer) -> None:
    world.start_kubelet()
    for name, seconds in (("hasty", 0), ("patient", 300), ("steadfast", None), ("brief", 1)):
        await world.client.create(PODS, patient(name, seconds))
    await set_ready(world, "False")
    await world.until_named(PODS, "patient", "steadfast")
    node = await world.get(NODES, "node-0")
    assert [taint["effect"] for taint in meta.spec(node)["taints"]] == ["NoSchedule", "NoExecute"]
    notes = {f"Marking for deletion Pod {NAMESPACE}/{name}" for name in ("hasty", "brief")}
    await world.until(EVENTS, lambda found: notes <= {event["note"] for event in found})
    await set_ready(world, "True")
    await world.until(NODES, lambda found: not meta.spec(found[0]).get("taints"))
