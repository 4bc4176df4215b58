"""Checks whether a pod can run on a node, and returns reasons with kube-scheduler's messages.

The checks have the order of kube-scheduler's filter plugins. The first failed check determines the reason.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias

from kuberuntime.objects import placement
from localkube.controllers.scheduler.capacity import NodeState
from localkube.controllers.scheduler.podinfo import ANY_ADDRESS, PodInfo, Port


class Cause(StrEnum):
    """The causes of an infeasible node, which are classified by the changes that can remove them."""

    NODE = "node"
    RESOURCES = "resources"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SPREAD = "spread"
    VOLUMES = "volumes"


Check: TypeAlias = Callable[[PodInfo, NodeState], list[str]]


def check_unschedulable(pod: PodInfo, node: NodeState) -> list[str]:
    """NodeUnschedulable: the node is cordoned, and the pod does not tolerate it."""
    if not node.unschedulable or any(toleration.tolerates(placement.CORDONED) for toleration in pod.tolerations):
        return []
    return ["node(s) were unschedulable"]


def check_taints(pod: PodInfo, node: NodeState) -> list[str]:
    """TaintToleration: a taint repels the pod."""
    for taint in node.taints:
        if taint.get("effect") in placement.REPELLING and not any(
            toleration.tolerates(taint) for toleration in pod.tolerations
        ):
            return [f"node(s) had untolerated taint {{{taint.get('key')}: {taint.get('value') or ''}}}"]
    return []


def check_node_affinity(pod: PodInfo, node: NodeState) -> list[str]:
    """NodeAffinity: nodeSelector and required node affinity do not match."""
    return [] if matches_affinity(pod, node) else ["node(s) didn't match Pod's node affinity/selector"]


def matches_affinity(pod: PodInfo, node: NodeState) -> bool:
    """Return whether the node matches nodeSelector and one of the required terms."""
    if not all(requirement.matches(node.labels) for requirement in pod.node_selector):
        return False
    return pod.node_terms is None or any(term.matches(node.name, node.labels) for term in pod.node_terms)


def check_ports(pod: PodInfo, node: NodeState) -> list[str]:
    """NodePorts: a host port is in use."""
    is_in_use = any(
        number and _ports_conflict(port, host_port) for port, number in node.ports.items() for host_port in pod.ports
    )
    return ["node(s) didn't have free ports for the requested pod ports"] if is_in_use else []


def check_resources(pod: PodInfo, node: NodeState) -> list[str]:
    """NodeResourcesFit: the resources that are insufficient on the node."""
    requests = [(name, amount) for name, amount in pod.requests.items() if amount]
    short = (name for name, amount in requests if amount + node.used[name] > node.allocatable.get(name, 0))
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in short]


NODE_CHECKS: Final[tuple[tuple[Cause, Check], ...]] = (
    (Cause.NODE, check_unschedulable),
    (Cause.NODE, check_taints),
    (Cause.NODE, check_node_affinity),
    (Cause.RESOURCES, check_ports),
    (Cause.RESOURCES, check_resources),
)


def _ports_conflict(left: Port, right: Port) -> bool:
    return left[1:] == right[1:] and (left[0] == right[0] or ANY_ADDRESS in (left[0], right[0]))
