"""Runs a real control plane with kwok nodes for tests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.podstate import ALL_RESTARTED
from kuberuntime.objects.resources import NODES as NODE_RESOURCE
from kuberuntime.objects.resources import PERSISTENT_VOLUMES, PODS, SERVICE_ACCOUNTS

from .cluster import CAPACITY, NODES, NODES_PER_RACK, RACK, RACKS_PER_ZONE, ZONE, ServedCluster, pods_on, report_ready

HUNG = "tests.example.com/hung"
"""The annotation of nodes and pods that kwok no longer manages."""

RESTARTS = "tests.example.com/restarts"
"""The pod annotation with the restart count that kwok reports."""

RESTARTED_AFTER = "tests.example.com/restarted-after"
"""The pod annotation with the exit code before the last restart."""

ENDED = "tests.example.com/ended"
"""The pod annotation with the exit code of the containers."""

KWOK = {"kwok.x-k8s.io/node": "fake"}

DECLARED = ["RestartAllContainersOnContainerExits"]
"""The node feature that kube-scheduler requires for pods that can restart all their containers."""

KILLED = 137


@dataclass
class KubernetesCluster(ServedCluster):
    """Implements `Cluster` with the simulated cluster."""

    name: str = field(default="kubernetes", init=False)

    async def await_namespace(self, client: Client, name: str) -> None:
        """Wait for the service account. Without it, pods are rejected."""
        accounts = Informer(client, Selection(SERVICE_ACCOUNTS, name))
        there = asyncio.Event()
        accounts.subscribe(lambda _: there.set())
        following = asyncio.create_task(accounts.run())
        async with asyncio.timeout(10):
            await there.wait()
        following.cancel()
        await asyncio.wait([following])

    async def restart_container(self, client: Client, pod: JSONObject) -> None:
        """Make kwok report an additional restart."""
        await client.patch(PODS, meta.key(pod), restart_patch(pod, 1), kind="merge")

    async def restart_all(self, client: Client, pod: JSONObject) -> None:
        """Report a restart of all containers, and briefly an unready pod, as a kubelet does."""
        ended = {"terminated": {"exitCode": KILLED, "reason": ALL_RESTARTED}}
        statuses = [
            {"name": container["name"], "restartCount": container["restartCount"] + 1, "lastState": ended}
            for container in meta.status(pod)["containerStatuses"]
        ]
        is_gated = bool(meta.spec(pod).get("readinessGates"))  # kwok says when it is ready again (`stages.yaml`)
        for status, kinds in (
            ("False", ("ContainersReady", "Ready")),
            ("True", ("ContainersReady", "Ready")[: 2 - is_gated]),
        ):
            conditions = [{"type": kind, "status": status} for kind in kinds]
            pod_status = {"containerStatuses": statuses, "conditions": conditions}
            patch = {"metadata": {"uid": meta.uid(pod)}, "status": pod_status}
            await client.patch(PODS, meta.key(pod), patch, kind="strategic", subresource="status")

    async def complete_container(self, client: Client, pod: JSONObject) -> None:
        """Make kwok report one additional restart after exit code 0.

        It may report a pod's start twice, and lose other writes.
        """
        await client.patch(PODS, meta.key(pod), restart_patch(pod, 0), kind="merge")

    async def end_kept(self, client: Client, pod: JSONObject) -> None:
        """Report the termination as a kubelet does, because kwok no longer reports a deleted pod."""
        patch = {"metadata": {"uid": meta.uid(pod)}, "status": {"phase": "Succeeded"}}
        await client.patch(PODS, meta.key(pod), patch, kind="strategic", subresource="status")

    async def end_pod(self, client: Client, pod: JSONObject, code: int) -> None:
        """Make kwok report that all containers terminated permanently."""
        await client.patch(PODS, meta.key(pod), annotation_patch(ENDED, str(code), meta.uid(pod)), kind="merge")

    @asynccontextmanager
    async def hung_node(self, client: Client, name: str, ready: str) -> AsyncIterator[None]:
        """Stop the kwok simulation of the node and its pods (`stages.yaml`)."""
        key = ObjectKey("", name)
        for pod in await pods_on(client, name):
            with suppress(NotFoundError):  # a pod of an earlier test, on its way out
                await client.patch(PODS, meta.key(pod), annotation_patch(HUNG, "true"), kind="merge")
        await client.patch(NODE_RESOURCE, key, annotation_patch(HUNG, "true"), kind="merge")
        await report_ready(client, name, ready)
        try:
            yield
        finally:
            await client.patch(NODE_RESOURCE, key, annotation_patch(HUNG, None), kind="merge")

    async def provide_volumes(self, client: Client, prefix: str, storage_class: str, count: int) -> None:
        """Create the volumes that an administrator would create."""
        for number in range(count):
            await client.create(PERSISTENT_VOLUMES, build_volume(f"{prefix}-{number}", storage_class))


def restart_patch(pod: JSONObject, code: int) -> JSONObject:
    """Return kwok's patch that reports another restart of the first container with this exit code."""
    restarts = meta.status(pod)["containerStatuses"][0]["restartCount"] + 1
    annotations = {RESTARTS: str(restarts), RESTARTED_AFTER: str(code)}
    return {"metadata": {"annotations": annotations, "uid": meta.uid(pod)}}


def annotation_patch(name: str, value: str | None, uid: str | None = None) -> JSONObject:
    """Return the patch that sets or removes an annotation of the object with this UID only."""
    return {"metadata": {"annotations": {name: value}} | ({"uid": uid} if uid else {})}


async def create_nodes(client: Client) -> None:
    """Create the nodes that kwok simulates."""
    for index in range(NODES):
        await client.create(NODE_RESOURCE, build_node(index))


def build_node(index: int) -> JSONObject:
    """Return a node in its rack and zone."""
    rack = index // NODES_PER_RACK
    name = f"node-{index}"
    labels = {"kubernetes.io/hostname": name, RACK: f"r{rack}", ZONE: f"z{rack // RACKS_PER_ZONE}"}
    return {
        "apiVersion": NODE_RESOURCE.api_version,
        "kind": NODE_RESOURCE.kind,
        "metadata": {"name": name, "labels": labels, "annotations": KWOK},
        "status": {"capacity": CAPACITY, "allocatable": CAPACITY, "declaredFeatures": DECLARED},
    }


def build_volume(name: str, storage_class: str) -> JSONObject:
    """Return a volume that is reserved for its claim."""
    return {
        "apiVersion": PERSISTENT_VOLUMES.api_version,
        "kind": PERSISTENT_VOLUMES.kind,
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "hostPath": {"path": f"/volumes/{name}"},
        },
    }
