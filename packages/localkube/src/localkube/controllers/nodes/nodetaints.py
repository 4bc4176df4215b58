"""Implements the node taint controller, which derives taints from node conditions.

Mirrors the taints of kube-controller-manager's `node_lifecycle_controller.go`. Upstream, the status of an unresponsive
node becomes Unknown, and pods on a node that is not ready become unready. This is not mirrored, because nodes run in
this process, so that only a user can make a node NotReady.
"""

from datetime import datetime
from typing import Final

from msgspec import Struct

from kuberuntime.cache.informer import Informer
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES
from kuberuntime.plan import Plan, guarded_patch

PREFIX: Final = "node.kubernetes.io/"

TAINTS: Final = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
}
EVICTING: Final = ("not-ready", "unreachable")
"""The taints that also evict pods (NoExecute)."""

UNSCHEDULABLE: Final = "unschedulable"
"""The taint of a cordoned node."""

OWN: Final = {PREFIX + name for name in (*TAINTS.values(), UNSCHEDULABLE)}


class NodeTaintController(Struct, frozen=True, kw_only=True):
    """Updates node taints when node conditions change."""

    nodes: Informer
    clock: Clock

    def watches(self) -> tuple[Watch, ...]:
        """Return the watches, with the nodes that a change affects."""
        return (Watch(self.nodes, lambda change: [meta.key(change.object)]),)

    async def plan(self, key: ObjectKey) -> Plan:
        """Update the taints of a node."""
        node = self.nodes.store.get(key)
        taints = None if node is None else desired_taints(node, self.clock.now())
        if node is None or taints is None:
            return Plan()
        return Plan((guarded_patch(NODES, node, {"spec": {"taints": taints}}),))


def desired_taints(node: JSONObject, now: datetime) -> list[JSONObject] | None:
    """Return the desired taints of the node, including unrelated taints, or None if they are up to date."""
    live: list[JSONObject] = meta.spec(node).get("taints") or []
    desired = required_taints(node)
    kept = [taint for taint in live if taint["key"] not in OWN or _identity(taint) in desired]
    missing = [pair for pair in desired if pair not in set(map(_identity, live))]
    if len(kept) == len(live) and not missing:
        return None
    added = timestamps.render(now)
    return kept + [{"key": key, "effect": effect, "timeAdded": added} for key, effect in missing]


def required_taints(node: JSONObject) -> list[tuple[str, str]]:
    """Return the keys and effects of the taints that the state of a node requires.

    >>> required_taints({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    [('node.kubernetes.io/not-ready', 'NoSchedule'), ('node.kubernetes.io/not-ready', 'NoExecute')]
    """
    conditions = [(condition["type"], condition["status"]) for condition in meta.status(node).get("conditions") or []]
    names = [TAINTS[pair] for pair in conditions if pair in TAINTS]
    cordoned = [UNSCHEDULABLE] if meta.spec(node).get("unschedulable") else []
    return [(PREFIX + name, "NoSchedule") for name in (*names, *cordoned)] + [
        (PREFIX + name, "NoExecute") for name in names if name in EVICTING
    ]


def _identity(taint: JSONObject) -> tuple[str, str]:
    return taint["key"], taint["effect"]
