"""Implements topology spread, which distributes pods evenly over nodes. Mirrors the PodTopologySpread plugin.

A node is eligible if it has all topology keys and, depending on the policies, fits the pod's node affinity and taints.
A hard constraint allows a node if its domain, including the pod, has at most `maxSkew` more pods than the domain with
the fewest pods.
"""

from collections import Counter

from msgspec import Struct

from localkube.controllers.scheduler import predicates
from localkube.controllers.scheduler.capacity import ClusterState, NodeState
from localkube.controllers.scheduler.podinfo import Constraint, PodInfo

MISMATCH = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{MISMATCH} (missing required label)"


class Spread(Struct, frozen=True):
    """A constraint with the number of matching pods in each eligible domain."""

    constraint: Constraint
    domains: Counter[str]
    own: int

    def rejection_reason(self, node: NodeState) -> str | None:
        """Return the reason why the pod cannot run on the node, or None if it can."""
        domain = node.labels.get(self.constraint.topology_key)
        if domain is None:
            return NO_LABEL
        fewest = 0 if len(self.domains) < self.constraint.min_domains else min(self.domains.values(), default=0)
        skew = self.domains[domain] + self.own - fewest
        return MISMATCH if skew > self.constraint.max_skew else None


def count_domains(cluster: ClusterState, pod: PodInfo, *, hard: bool) -> tuple[Spread, ...]:
    """Count the domains of all hard, or all soft, constraints of a pod."""
    constraints = [constraint for constraint in pod.constraints if constraint.is_hard is hard]
    keys = {constraint.topology_key for constraint in constraints}
    return tuple(_count_constraint_domains(cluster, pod, constraint, keys) for constraint in constraints)


def _count_constraint_domains(cluster: ClusterState, pod: PodInfo, constraint: Constraint, keys: set[str]) -> Spread:
    counts = cluster.count((constraint.scope,))
    domains: Counter[str] = Counter()
    for node in cluster.nodes.values():
        if keys <= node.labels.keys() and _is_eligible(pod, node, constraint):
            domains[node.labels[constraint.topology_key]] += counts.get(node.name, 0)
    return Spread(constraint, domains, int(cluster.matches((constraint.scope,), pod)))


def _is_eligible(pod: PodInfo, node: NodeState, constraint: Constraint) -> bool:
    if constraint.honor_affinity and not predicates.matches_affinity(pod, node):
        return False
    return not (constraint.honor_taints and predicates.check_taints(pod, node))
