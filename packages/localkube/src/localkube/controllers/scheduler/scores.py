"""Selects the best feasible node for a pod with kube-scheduler's main scores (0 to 100, weighted).

Nodes with more free capacity and nodes that the pod prefers have higher scores. If scores are equal, the first node is
chosen, so that decisions are reproducible.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from localkube.controllers.scheduler import spread
from localkube.controllers.scheduler.capacity import ClusterState, NodeState
from localkube.controllers.scheduler.podinfo import PodInfo

FULL: Final = 100.0

Scorer: TypeAlias = Callable[[ClusterState, PodInfo, Sequence[NodeState]], list[float]]


def choose_node(cluster: ClusterState, pod: PodInfo, nodes: Sequence[NodeState]) -> NodeState:
    """Return the node with the highest score. `nodes` must not be empty."""
    if len(nodes) == 1:
        return nodes[0]
    totals = [0.0] * len(nodes)
    for weight, scorer in SCORERS:
        scores = scorer(cluster, pod, nodes)
        totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
    return nodes[max(range(len(nodes)), key=lambda index: (totals[index], -index))]


def score_least_allocated(_: ClusterState, pod: PodInfo, nodes: Sequence[NodeState]) -> list[float]:
    """NodeResourcesFit: the fraction of CPU and memory that remains free with the pod on the node."""
    return [FULL * sum(_free_fraction(node, pod, name) for name in pod.scored) / len(pod.scored) for node in nodes]


def score_preferred_nodes(_: ClusterState, pod: PodInfo, nodes: Sequence[NodeState]) -> list[float]:
    """NodeAffinity: the sum of the weights of the preferences that the node matches."""
    return normalize(
        [sum(weight for weight, term in pod.preferred_nodes if term.matches(node.name, node.labels)) for node in nodes]
    )


def score_taints(_: ClusterState, pod: PodInfo, nodes: Sequence[NodeState]) -> list[float]:
    """TaintToleration: nodes with fewer untolerated PreferNoSchedule taints have a higher score."""
    return normalize([-sum(_is_untolerated_preference(pod, taint) for taint in node.taints) for node in nodes])


def score_preferred_pods(cluster: ClusterState, pod: PodInfo, nodes: Sequence[NodeState]) -> list[float]:
    """InterPodAffinity: the sum of the weights of preferences for and against pods in the node's domains."""
    domains = [(term, cluster.count_domains((term.scope,), term.topology_key)) for term in pod.preferred]
    return normalize(
        [
            sum(term.weight * counts[node.labels.get(term.topology_key, "")] for term, counts in domains)
            for node in nodes
        ]
    )


def score_spread(cluster: ClusterState, pod: PodInfo, nodes: Sequence[NodeState]) -> list[float]:
    """PodTopologySpread: nodes with fewer matching pods in their domains have a higher score."""
    soft = spread.count_domains(cluster, pod, hard=False)
    return normalize(
        [
            -sum(
                topology_spread.domains[node.labels.get(topology_spread.constraint.topology_key, "")]
                for topology_spread in soft
            )
            for node in nodes
        ]
    )


SCORERS: Final[tuple[tuple[int, Scorer], ...]] = (
    (1, score_least_allocated),
    (2, score_preferred_nodes),
    (3, score_taints),
    (2, score_preferred_pods),
    (2, score_spread),
)


def normalize(values: Sequence[int]) -> list[float]:
    """Scale values to the range 0 to 100. If all values are equal, they become 0.

    >>> normalize([1, 3, 2]), normalize([5, 5])
    ([0.0, 100.0, 50.0], [0.0, 0.0])
    """
    lowest, highest = min(values), max(values)
    return [FULL * (value - lowest) / (highest - lowest) if highest > lowest else 0.0 for value in values]


def _free_fraction(node: NodeState, pod: PodInfo, name: str) -> float:
    has = node.allocatable.get(name, 0)
    return max(0.0, (has - node.scored[name] - pod.scored[name]) / has) if has else 0.0


def _is_untolerated_preference(pod: PodInfo, taint: dict[str, str]) -> bool:
    return taint.get("effect") == "PreferNoSchedule" and not any(
        toleration.tolerates(taint) for toleration in pod.tolerations
    )
