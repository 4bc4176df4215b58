"""Describes node taints that Kubernetes sets for node conditions, and taints of autoscalers or `lws move`. Pure.

The component removes its own taint. The cause is the reason for the taint, so users should not tolerate or remove it.
"""

from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from lwsctl.diagnosis.ranks import quote_message


class ComponentTaint(Struct, frozen=True):
    """The prefix of a taint key, what it means for node {node}, and the next step. `condition` adds details."""

    key: str
    meaning: str
    next_step: str
    condition: str = ""


PRESSURE: Final = "; Kubernetes then removes the taint"
REPAIR: Final = "repair or restart node {node}; if it is switched off permanently: {kubectl} delete node {node}"
KNOWN: Final = (
    ComponentTaint("node.kubernetes.io/not-ready", "is not ready", REPAIR, "Ready"),
    ComponentTaint("node.kubernetes.io/unreachable", "does not report", REPAIR, "Ready"),
    ComponentTaint(
        "node.kubernetes.io/disk-pressure",
        "is low on disk space",
        f"free disk space on node {{node}} (images, logs, emptyDir volumes){PRESSURE}",
        "DiskPressure",
    ),
    ComponentTaint(
        "node.kubernetes.io/memory-pressure",
        "is low on memory",
        f"free memory on node {{node}}{PRESSURE}",
        "MemoryPressure",
    ),
    ComponentTaint(
        "node.kubernetes.io/pid-pressure",
        "has too many processes",
        f"stop processes on node {{node}}{PRESSURE}",
        "PIDPressure",
    ),
    ComponentTaint(
        "node.kubernetes.io/network-unavailable",
        "has no pod network yet",
        "check the network plugin on node {node}",
        "NetworkUnavailable",
    ),
    ComponentTaint(
        "node.kubernetes.io/unschedulable", "is cordoned", "to use the node again: {kubectl} uncordon {node}"
    ),
    ComponentTaint(
        "node.kubernetes.io/out-of-service",
        "is out of service",
        "after you have repaired node {node}: {kubectl} taint nodes {node} node.kubernetes.io/out-of-service-",
    ),
    ComponentTaint(
        "node.cloudprovider.kubernetes.io/",
        "is not initialized by the cloud controller manager, or is shut down",
        "check the cloud-controller-manager, and check that machine {node} is running",
    ),
    ComponentTaint(
        "ToBeDeletedByClusterAutoscaler",
        "is being removed by cluster-autoscaler",
        "wait until a different node is added, or increase the minimum size of the node group",
    ),
    ComponentTaint(
        "karpenter.sh/disrupt", "is being replaced by Karpenter", "wait for its replacement: {kubectl} get nodeclaims"
    ),
    ComponentTaint(
        "karpenter.sh/unregistered",
        "is starting, and Karpenter has not registered it",
        "wait for its registration: {kubectl} get nodeclaims",
    ),
    ComponentTaint(
        "node.cilium.io/agent-not-ready", "waits for its network agent", "check the Cilium agent on node {node}"
    ),
    ComponentTaint(
        labels.MOVING,
        "is reserved by `lws move`, which is still moving a group",
        f"wait until the move is complete; if `lws move` was killed: {{kubectl}} taint nodes {{node}} {labels.MOVING}-",
    ),
)


def find_component_taint(taint: JSONObject) -> ComponentTaint | None:
    """Return the entry for a component's taint, or None if a user set the taint."""
    key = str(taint.get("key") or "")
    return next((entry for entry in KNOWN if key.startswith(entry.key)), None)


def describe_taint(entry: ComponentTaint, node: JSONObject) -> str:
    """Describe a component's taint on a node, with the message of the node condition."""
    condition = meta.find_condition(node, entry.condition) if entry.condition else None
    message = quote_message(str((condition or {}).get("message") or ""))
    return f"node {meta.name(node)} {entry.meaning}" + (f" ({message})" if message else "")
