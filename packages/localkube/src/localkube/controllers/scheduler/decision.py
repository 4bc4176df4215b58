"""Selects the best feasible node for a pod, or collects the reasons why no node is feasible."""

from collections import Counter
from typing import TypeAlias

from msgspec import Struct

from localkube.controllers.scheduler import affinity, scores, spread
from localkube.controllers.scheduler.capacity import ClusterState, NodeState
from localkube.controllers.scheduler.podinfo import PodInfo
from localkube.controllers.scheduler.predicates import NODE_CHECKS, Cause


class Placement(Struct, frozen=True):
    """The node for the pod."""

    node: str


class Unschedulable(Struct, frozen=True):
    """No node is feasible. `causes` determine the changes that can help."""

    message: str
    causes: frozenset[Cause]


Decision: TypeAlias = Placement | Unschedulable


def decide(cluster: ClusterState, pod: PodInfo) -> Decision:
    """Select a node."""
    near = affinity.count_affinity_pods(cluster, pod)
    spreads = spread.count_domains(cluster, pod, hard=True)
    possible: list[NodeState] = []
    reasons: Counter[str] = Counter()
    causes: set[Cause] = set()
    for node in cluster.nodes.values():
        objections = _rejection_reasons(pod, node, near, spreads)
        if not objections:
            possible.append(node)
        for cause, reason in objections:
            causes.add(cause)
            reasons[reason] += 1
    if possible:
        return Placement(scores.choose_node(cluster, pod, possible).name)
    return Unschedulable(unschedulable_message(len(cluster.nodes), reasons), frozenset(causes))


def unschedulable_message(nodes: int, reasons: Counter[str]) -> str:
    """Return kube-scheduler's message if no node is feasible.

    >>> unschedulable_message(3, Counter({"Insufficient cpu": 2, "node(s) were unschedulable": 1}))
    '0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.'
    """
    if not nodes:
        return "no nodes available to schedule pods"
    return f"0/{nodes} nodes are available: {', '.join(sorted(f'{n} {reason}' for reason, n in reasons.items()))}."


def _rejection_reasons(
    pod: PodInfo, node: NodeState, near: affinity.Affinity, spreads: tuple[spread.Spread, ...]
) -> list[tuple[Cause, str]]:
    """Return the reasons of the first rule that rejects the node."""
    for cause, check in NODE_CHECKS:
        if reasons := check(pod, node):
            return [(cause, reason) for reason in reasons]
    for topology_spread in spreads:
        if reason := topology_spread.rejection_reason(node):
            return [(Cause.SPREAD, reason)]
    objection = near.rejection_reason(node)
    return [objection] if objection else []
