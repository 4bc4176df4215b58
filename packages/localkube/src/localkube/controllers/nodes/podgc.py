"""Removes the pods of deleted nodes immediately, because no kubelet will report their termination.

Mirrors `gcOrphaned` of kube-controller-manager, without its quarantine: a live GET shows whether a simulated node was
deleted.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import disruptiontarget, meta, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from kuberuntime.plan import Action, Delete, Patch, Plan, identified_patch

BY_NODE: Final = "node"


def node_index(pod: JSONObject) -> Iterable[str]:
    """Index a pod by the name of its node."""
    node = meta.spec(pod).get("nodeName")
    return [node] if node else []


class PodGarbageCollector(Struct, frozen=True):
    """Removes the pods of deleted nodes. `pods` has the index above. Keys are node names."""

    client: Client
    pods: Informer
    nodes: Informer
    clock: Clock

    def watches(self) -> tuple[Watch, ...]:
        """Return the watches, with the nodes that a change affects."""
        lost_node = Watch(self.nodes, lambda change: [meta.key(change.object)] if change.new is None else [])
        return lost_node, Watch(self.pods, self._nodes_of_orphaned_pod)

    async def plan(self, key: ObjectKey) -> Plan:
        """Remove the pods of a node if the node was deleted."""
        stranded = self.pods.store.by_index(BY_NODE, key.name)
        if not stranded or await self.client.find(NODES, key) is not None:
            return Plan()
        condition = disruptiontarget.condition("DeletionByPodGC", "PodGC: node no longer exists", self.clock.now())
        return Plan(tuple(action for pod in stranded for action in _remove(pod, condition)))

    def _nodes_of_orphaned_pod(self, change: Change) -> Iterator[ObjectKey]:
        """Yield the node of a pod if the node is unknown, because it was deleted earlier or is not observed yet."""
        for node in node_index(change.new or {}):
            if self.nodes.store.get(ObjectKey("", node)) is None:
                yield ObjectKey("", node)


def _remove(pod: JSONObject, condition: JSONObject) -> Iterator[Action]:
    """Mark the pod as failed, unless it has terminated, and delete it without a grace period."""
    failed = {} if podstate.has_ended(pod) else {"phase": "Failed"}
    yield status_patch(pod, failed | {"conditions": [condition]})
    yield Delete(resource=PODS, key=meta.key(pod), uid=meta.uid(pod), grace_period=0)


def status_patch(pod: JSONObject, status: JSONObject) -> Patch:
    """Return a status patch for a pod that is about to be deleted."""
    return identified_patch(PODS, pod, {"status": status}, subresource="status", kind="strategic", if_present=True)
