"""Implements inter-pod affinity, by the required terms of a pod and of the running pods.

Other pods are counted once per decision, so that each node needs only a few lookups. Mirrors the InterPodAffinity
plugin of kube-scheduler, with its exception for the first pod of a group with affinity to itself.
"""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from localkube.controllers.scheduler.capacity import ClusterState, NodeState
from localkube.controllers.scheduler.podinfo import PodInfo
from localkube.controllers.scheduler.predicates import Cause


class Affinity(Struct, frozen=True):
    """The pods that are relevant for the affinity of a pod."""

    required: tuple[tuple[str, Mapping[str, int]], ...]
    """The topology key of each required affinity term, and the number of pods per domain that match all terms."""
    is_first: bool
    """Only the pod itself matches all affinity terms, so that it can run on any node."""
    avoided: frozenset[tuple[str, str]]
    """Topology pairs with pods that the pod's anti-affinity selects."""
    claimed: frozenset[tuple[str, str]]
    """Topology pairs with pods whose anti-affinity selects the pod."""

    def rejection_reason(self, node: NodeState) -> tuple[Cause, str] | None:
        """Return the reason why the pod cannot run on the node, or None if it can."""
        if not self._is_near(node):
            return Cause.AFFINITY, "node(s) didn't match pod affinity rules"
        if _has_any_label(node, self.avoided):
            return Cause.ANTI_AFFINITY, "node(s) didn't match pod anti-affinity rules"
        if _has_any_label(node, self.claimed):
            return Cause.ANTI_AFFINITY, "node(s) didn't satisfy existing pods anti-affinity rules"
        return None

    def _is_near(self, node: NodeState) -> bool:
        if any(key not in node.labels for key, _ in self.required):
            return False
        return self.is_first or all(domains.get(node.labels[key], 0) > 0 for key, domains in self.required)


def count_affinity_pods(cluster: ClusterState, pod: PodInfo) -> Affinity:
    """Count the pods that this pod's affinity terms select, and the pods whose anti-affinity selects this pod."""
    scopes = tuple(term.scope for term in pod.affinity)
    required: list[tuple[str, Counter[str]]] = [
        (term.topology_key, cluster.count_domains(scopes, term.topology_key)) for term in pod.affinity
    ]
    alone = not any(domains for _, domains in required)
    return Affinity(
        required=tuple(required),
        is_first=bool(required) and alone and cluster.matches(scopes, pod),
        avoided=frozenset(
            (term.topology_key, value)
            for term in pod.anti_affinity
            for value in cluster.count_domains((term.scope,), term.topology_key)
        ),
        claimed=frozenset(cluster.forbidden_domains(pod)),
    )


def _has_any_label(node: NodeState, pairs: frozenset[tuple[str, str]]) -> bool:
    return any(node.labels.get(key) == value for key, value in pairs)
