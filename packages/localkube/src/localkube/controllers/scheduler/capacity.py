"""Tracks the free capacity of nodes, and counts of their pods by scope, as pods are added and removed.

So the cost of a decision depends on the number of nodes, not of pods. The counts of a scope are computed from all pods
when a term first needs them. The least recently used counts are dropped.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject
from localkube.controllers.scheduler import amounts
from localkube.controllers.scheduler.amounts import Amounts
from localkube.controllers.scheduler.podinfo import PodInfo, Port, Scope, Term

KEPT_SCOPES: Final = 1024

Scopes: TypeAlias = tuple[Scope, ...]
"""Scopes, which must all match a pod."""


class NodeState(Struct):
    """The properties of a node, and the sums over its pods."""

    name: str
    labels: dict[str, str]
    taints: tuple[JSONObject, ...]
    unschedulable: bool
    allocatable: Amounts
    used: Counter[str] = field(default_factory=Counter)
    scored: Counter[str] = field(default_factory=Counter)
    ports: Counter[Port] = field(default_factory=Counter)


class PlacedPod(Struct, frozen=True):
    """A pod and the name of its node, which might no longer exist."""

    pod: PodInfo
    node: str


class ClusterState(Struct):
    """The nodes and placed pods. Only the scheduler's driver modifies them."""

    nodes: dict[str, NodeState] = field(default_factory=dict)
    pods: dict[UID, PlacedPod] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    _by_node: dict[str, dict[UID, PodInfo]] = field(default_factory=dict)
    _counts: "OrderedDict[Scopes, Counter[str]]" = field(default_factory=OrderedDict)
    _anti_affinity_nodes: dict[Term, Counter[str]] = field(default_factory=dict)

    def put_node(self, node: JSONObject) -> None:
        """Store the current state of a node."""
        state = read_node(node)
        for pod in self._by_node.get(state.name, {}).values():
            _add_pod(state, pod, 1)
        self.nodes[state.name] = state

    def put_namespace(self, name: str, labels: dict[str, str]) -> bool:
        """Store the labels of a namespace. Return whether they changed."""
        if self.namespaces.get(name) == labels:
            return False
        self.namespaces[name] = labels
        self._counts.clear()
        return True

    def place(self, pod: PodInfo, node: str) -> None:
        """Count a pod on the node on which it runs or will run."""
        if self.pods.get(pod.uid) == PlacedPod(pod, node):
            return
        self.remove(pod.uid)
        self.pods[pod.uid] = PlacedPod(pod, node)
        self._by_node.setdefault(node, {})[pod.uid] = pod
        self._count(pod, node, 1)

    def remove(self, uid: UID) -> PlacedPod | None:
        """Remove a pod. Return its node."""
        placed = self.pods.pop(uid, None)
        if placed is not None:
            del self._by_node[placed.node][uid]
            self._count(placed.pod, placed.node, -1)
        return placed

    def count(self, scopes: Scopes) -> Mapping[str, int]:
        """Return the number of pods that match all scopes, by node."""
        counts = self._counts.get(scopes)
        if counts is None:
            matching = (placed.node for placed in self.pods.values() if self.matches(scopes, placed.pod))
            counts = self._counts[scopes] = Counter(matching)
            if len(self._counts) > KEPT_SCOPES:
                self._counts.popitem(last=False)
        self._counts.move_to_end(scopes)
        return counts

    def count_domains(self, scopes: Scopes, topology_key: str) -> Counter[str]:
        """Return the number of pods that match all scopes, by the value of a node label."""
        return self._by_domain(self.count(scopes), topology_key)

    def forbidden_domains(self, pod: PodInfo) -> set[tuple[str, str]]:
        """Return the topology pairs that the anti-affinity of running pods excludes for this pod."""
        return {
            (term.topology_key, value)
            for term, nodes in self._anti_affinity_nodes.items()
            if self.matches((term.scope,), pod)
            for value in self._by_domain(nodes, term.topology_key)
        }

    def matches(self, scopes: Iterable[Scope], pod: PodInfo) -> bool:
        """Return whether a pod matches all scopes."""
        labels = self.namespaces.get(pod.key.namespace, {})
        return all(
            scope.matches(pod.key.namespace, pod.labels, labels)
            and not (scope.excludes_terminating and pod.is_deleting)
            for scope in scopes
        )

    def _by_domain(self, nodes: Mapping[str, int], topology_key: str) -> Counter[str]:
        domains: Counter[str] = Counter()
        for name, number in nodes.items():
            node = self.nodes.get(name)
            if number and node is not None and topology_key in node.labels:
                domains[node.labels[topology_key]] += number
        return domains

    def _count(self, pod: PodInfo, name: str, change: int) -> None:
        node = self.nodes.get(name)
        if node is not None:
            _add_pod(node, pod, change)
        for scopes, counts in self._counts.items():
            if self.matches(scopes, pod):
                counts[name] += change
        for term in pod.anti_affinity:
            carriers = self._anti_affinity_nodes.setdefault(term, Counter())
            carriers[name] += change
            if not any(carriers.values()):
                del self._anti_affinity_nodes[term]


def read_node(node: JSONObject) -> NodeState:
    """Parse a node, without pods."""
    spec = meta.spec(node)
    return NodeState(
        name=meta.name(node),
        labels=meta.labels(node),
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=amounts.parse(meta.status(node).get("allocatable")),
    )


def _add_pod(node: NodeState, pod: PodInfo, change: int) -> None:
    _add(node.used, pod.requests, change)
    _add(node.scored, pod.scored, change)
    for port in pod.ports:
        node.ports[port] += change


def _add(sums: Counter[str], amounts: Amounts, change: int) -> None:
    for name, amount in amounts.items():
        sums[name] += change * amount
