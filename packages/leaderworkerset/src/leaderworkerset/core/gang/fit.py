"""Estimates whether pods fit on nodes, based on their requests and the free resources.

Input: nodes, the sums of the requests of their pods, and the requirements of additional pods. Output: whether all
additional pods fit. The estimate is optimistic: it considers requests, the number of pods, node selectors, required
node affinity and taints, and takes the first nodes with space. It ignores affinity between pods, spreading, volumes,
host ports and devices claimed by name, and the scheduler may choose other nodes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

from kuberuntime.objects import meta, placement, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.placement import NodeTerm, Toleration
from kuberuntime.objects.selectors import Requirement
from leaderworkerset.core.gang import demand

Amounts: TypeAlias = Mapping[str, int]
"""The resource quantities by name, in nano-units."""

PODS: Final = "pods"
"""The resource that counts pods."""


class Need(Struct, frozen=True):
    """The requirements of a pod for its node. Pods from the same template have equal requirements."""

    requests: tuple[tuple[str, int], ...]
    selector: tuple[Requirement, ...]
    terms: tuple[NodeTerm, ...] | None
    tolerations: tuple[Toleration, ...]


class _NodeSpace(Struct):
    """A node, and its free resources during placement."""

    name: str
    labels: dict[str, str]
    taints: tuple[JSONObject, ...]
    free: dict[str, int]

    def admits(self, need: Need) -> bool:
        """Return whether the pod can run on the node, regardless of free resources."""
        return self.is_selected(need) and placement.tolerate_all(need.tolerations, self.taints)

    def is_selected(self, need: Need) -> bool:
        """Return whether the node has the required labels."""
        if not all(requirement.matches(self.labels) for requirement in need.selector):
            return False
        return need.terms is None or any(term.matches(self.name, self.labels) for term in need.terms)

    def count(self, need: Need) -> int:
        """Return the number of pods with these requirements that fit on the node."""
        return max(min(self.free.get(name, 0) // amount for name, amount in need.requests), 0)

    def reserve(self, need: Need, number: int) -> None:
        """Reserve resources for `number` pods, or release them if the number is negative."""
        for name, amount in need.requests:
            self.free[name] = self.free.get(name, 0) - number * amount


class _Search(Struct):
    """The nodes that match these requirements. Nodes before `start` are full."""

    nodes: list[_NodeSpace]
    start: int = 0

    def find_nodes(self, need: Need, number: int) -> Iterator[tuple[_NodeSpace, int]]:
        """Yield nodes with free resources and the number of pods that fit, until all pods are placed."""
        for index in range(self.start, len(self.nodes)):
            node = self.nodes[index]
            count = min(node.count(need), number)
            if count:
                yield node, count
                number -= count
            if not number:
                return

    def skip_full(self, need: Need) -> None:
        """Skip the full nodes at the start of the list."""
        while self.start < len(self.nodes) and not self.nodes[self.start].count(need):
            self.start += 1


class FreeSpace(Struct):
    """The free resources of nodes during the placement of groups in one reconciliation.

    Space is never released. So requirements that did not fit are not retried, and nodes without enough space for them
    are skipped.
    """

    _nodes: list[_NodeSpace]
    _searches: dict[Need, _Search] = field(default_factory=dict)
    _unplaceable: set[frozenset[tuple[Need, int]]] = field(default_factory=set)

    def place(self, needs: Mapping[Need, int]) -> bool:
        """Reserve resources for all pods or for none. Return whether all pods fit."""
        return self.distribute(needs) is not None

    def distribute(self, needs: Mapping[Need, int]) -> Counter[str] | None:
        """Reserve resources like `place`. Return the number of pods per node, or None if not all pods fit."""
        amounts = frozenset(needs.items())
        if amounts in self._unplaceable:
            return None
        reservations: list[tuple[_NodeSpace, Need, int]] = []
        for need in sorted(needs, key=self._sort_key):
            before = len(reservations)
            reservations += [(node, need, number) for node, number in self._search(need).find_nodes(need, needs[need])]
            for node, _, number in reservations[before:]:
                node.reserve(need, number)
            if sum(number for _, _, number in reservations[before:]) < needs[need]:
                self._release(reservations)
                self._unplaceable.add(amounts)
                return None
        for need in needs:
            self._search(need).skip_full(need)
        pods: Counter[str] = Counter()
        for node, _, number in reservations:
            pods[node.name] += number
        return pods

    def _release(self, reservations: Iterable[tuple[_NodeSpace, Need, int]]) -> None:
        for node, need, number in reservations:
            node.reserve(need, -number)

    def _sort_key(self, need: Need) -> tuple[int, tuple[tuple[str, int], ...]]:
        """Return a sort key for requirements, so that the requirements with the fewest nodes are placed first."""
        return len(self._search(need).nodes), need.requests

    def _search(self, need: Need) -> _Search:
        if need not in self._searches:
            self._searches[need] = _Search([node for node in self._nodes if node.admits(need)])
        return self._searches[need]


def free_space(nodes: Iterable[JSONObject], used: Mapping[str, Amounts]) -> FreeSpace:
    """Return the unrequested resources by node name."""
    return FreeSpace([_node_space(node, used.get(meta.name(node), {})) for node in nodes])


def obstacle(node: JSONObject, used: Amounts, need: Need) -> str:
    """Return the reason why a pod does not fit on a node, for example insufficient CPU.

    Return an empty string if it fits.
    """
    space = _node_space(node, used)
    if lacking := [name for name, amount in need.requests if space.free.get(name, 0) < amount]:
        return ", ".join(lacking)
    if not space.is_selected(need):
        return "node selector, affinity or volume"
    return "" if space.admits(need) else "taint"


def read_need(pod: JSONObject) -> Need:
    """Return the requirements of a pod for its node."""
    spec = meta.spec(pod)
    return Need(
        requests=tuple(sorted(read_requests(pod).items())),
        selector=placement.read_node_selector(spec),
        terms=placement.read_node_terms(spec),
        tolerations=placement.read_tolerations(spec),
    )


def read_requests(pod: JSONObject) -> dict[str, int]:
    """Return the effective requests of a pod, including one unit of `pods`. Zero quantities are omitted."""
    requests = {name: amount.nanos for name, amount in demand.pod_requests(meta.spec(pod)).items() if amount}
    return requests | {PODS: quantity.NANOS}


def count_needs(pods: Iterable[JSONObject]) -> Counter[Need]:
    """Return the number of pods for each set of requirements."""
    return Counter(map(read_need, pods))


def _node_space(node: JSONObject, used: Amounts) -> _NodeSpace:
    allocatable = quantity.parse_list(meta.status(node).get("allocatable"))
    return _NodeSpace(
        name=meta.name(node),
        labels=meta.labels(node),
        taints=tuple(placement.repelling_taints(meta.spec(node))),
        free={name: amount.nanos - used.get(name, 0) for name, amount in allocatable.items()},
    )
