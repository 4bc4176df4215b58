"""Nodes that are drained, or lost with all that runs on them.

What such a fault changes is in the API, and so survives the cluster's process. The annotation says so on the node: a
cluster that starts again undoes what it finds (`restore`).
"""

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
"""The taint by which administrators declare a node lost, so that its pods are replaced."""


class Leaving:
    """Makes a node unschedulable, and removes its pods: with their grace period, or as if its power was cut."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def begin(self, fault: Fault) -> Undo:
        """Remove the pods; make the node schedulable again in the end."""
        name, is_lost = fault.targets[0], fault.kind is FaultKind.LOSE_NODE
        node = await self._find(name)
        if meta.spec(node).get("unschedulable"):
            raise FaultError(f"{fault.kind}: node {name} is unschedulable already: choose another one")
        taints = {"taints": [*(meta.spec(node).get("taints") or []), LOST]} if is_lost else {}
        change = {
            "metadata": {"annotations": {MARK: str(fault.kind)}},
            "spec": {"unschedulable": True} | taints,
        }

        async def undo() -> None:
            await recover(self._client, name)

        await self._client.patch(NODES, meta.key(node), change, kind="merge")
        pods = await self._client.list(PODS, field_selector=f"spec.nodeName={name}")
        for pod in pods.items:
            await self._remove(pod, is_lost=is_lost)
        return undo

    async def _remove(self, pod: JSONObject, *, is_lost: bool) -> None:
        try:
            await self._client.delete(PODS, meta.key(pod), uid=meta.uid(pod), grace_period=0 if is_lost else None)
        except NotFoundError:
            return

    async def _find(self, name: str) -> JSONObject:
        try:
            return await self._client.get(NODES, ObjectKey("", name))
        except NotFoundError as error:
            names = ", ".join(map(meta.name, (await self._client.list(NODES)).items))
            raise FaultError(f"node {name} is not there; there are {names}") from error


async def recover(client: Client, name: str) -> None:
    """Make a node schedulable again; one that is gone is not an error."""
    try:
        node = await client.get(NODES, ObjectKey("", name))
        taints = meta.spec(node).get("taints") or []
        kept = [taint for taint in taints if taint["key"] != LOST["key"]]
        spec = {"unschedulable": None} | ({"taints": kept} if kept != taints else {})
        change = {"metadata": {"annotations": {MARK: None}}, "spec": spec}
        await client.patch(NODES, meta.key(node), change, kind="merge")
    except NotFoundError:
        return


async def restore(client: Client) -> None:
    """Undo what faults of an earlier process left on nodes."""
    for node in (await client.list(NODES)).items:
        if MARK in meta.annotations(node):
            await recover(client, meta.name(node))
