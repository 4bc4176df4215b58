"""Implements faults of nodes, which are drained, or lost with all their pods.

Such a fault changes API objects, so it survives the cluster's process. An annotation marks the node, so that a
restarted cluster reverts the fault (`restore_nodes`).
"""

from contextlib import suppress
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from localkube.faults.effects import Undo
from localkube.faults.fault import Fault, FaultError, FaultKind

MARK: Final = "localkube/fault"
"""The annotation of a node that a fault made unschedulable."""

LOST: Final = {"key": "node.kubernetes.io/out-of-service", "value": "fault", "effect": "NoExecute"}
"""The taint with which administrators mark a node as lost, so that its pods are replaced."""


async def remove_node(client: Client, fault: Fault) -> Undo:
    """Make a node unschedulable, and remove its pods, either with their grace period or as in a power failure."""
    name, is_lost = fault.targets[0], fault.kind is FaultKind.LOSE_NODE
    node = await _find(client, name)
    if meta.spec(node).get("unschedulable"):
        raise FaultError(f"{fault.kind}: node {name} is already unschedulable. Choose a different node")
    taints = {"taints": [*(meta.spec(node).get("taints") or []), LOST]} if is_lost else {}
    change = {
        "metadata": {"annotations": {MARK: str(fault.kind)}},
        "spec": {"unschedulable": True} | taints,
    }

    async def undo() -> None:
        await recover_node(client, name)

    await client.patch(NODES, meta.key(node), change, kind="merge")
    pods = await client.list(PODS, field_selector=f"spec.nodeName={name}")
    for pod in pods.items:
        with suppress(NotFoundError):
            await client.delete(PODS, meta.key(pod), uid=meta.uid(pod), grace_period=0 if is_lost else None)
    return undo


async def _find(client: Client, name: str) -> JSONObject:
    node = await client.find(NODES, ObjectKey("", name))
    if node is None:
        names = ", ".join(map(meta.name, (await client.list(NODES)).items))
        raise FaultError(f"node {name} does not exist; available: {names}")
    return node


async def recover_node(client: Client, name: str) -> None:
    """Make a node schedulable, if it still exists."""
    with suppress(NotFoundError):
        node = await client.get(NODES, ObjectKey("", name))
        taints = meta.spec(node).get("taints") or []
        others = [taint for taint in taints if taint["key"] != LOST["key"]]
        spec = {"unschedulable": None} | ({"taints": others} if others != taints else {})
        change = {"metadata": {"annotations": {MARK: None}}, "spec": spec}
        await client.patch(NODES, meta.key(node), change, kind="merge")


async def restore_nodes(client: Client) -> None:
    """Revert the node faults of an earlier process."""
    for node in (await client.list(NODES)).items:
        if MARK in meta.annotations(node):
            await recover_node(client, meta.name(node))
