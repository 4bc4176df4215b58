"""Finds nodes that are closed for maintenance, and pods that must be moved from them.

Input: cached nodes and pods. A node is closed by a cordon, by the configured taint, or by a different taint with the
effect `NoExecute`. Taints that describe the state of a node (`node.kubernetes.io/…`) do not count, because an
unreachable node is not under maintenance, and pods on lost nodes are handled separately. A pod that tolerates all
these taints is not moved, because it would be scheduled to the node again.
"""

from typing import Final

from kuberuntime.objects import meta, placement, podstate
from kuberuntime.objects.meta import JSONObject

OF_KUBERNETES: Final = "node.kubernetes.io/"


def closing_taints(node: JSONObject, taint: str) -> tuple[JSONObject, ...]:
    """Return the taints that close a node, or none if the node is open. The configured key `taint` can be empty."""
    spec = meta.spec(node)
    cordoned = (placement.CORDONED,) if spec.get("unschedulable") else ()
    return (*cordoned, *(row for row in spec.get("taints") or () if _closes_node(row, taint)))


def _closes_node(taint: JSONObject, configured: str) -> bool:
    key, effect = taint.get("key") or "", taint.get("effect")
    if configured and key == configured:
        return effect in placement.REPELLING
    return effect == "NoExecute" and not key.startswith(OF_KUBERNETES)


def must_be_moved(pod: JSONObject, taints: tuple[JSONObject, ...]) -> bool:
    """Return whether the node would now reject the pod. Terminating pods are ignored."""
    if meta.is_deleting(pod) or podstate.has_ended(pod):
        return False
    lasting = (toleration for toleration in placement.read_tolerations(meta.spec(pod)) if toleration.seconds is None)
    return not placement.tolerate_all(lasting, taints)
