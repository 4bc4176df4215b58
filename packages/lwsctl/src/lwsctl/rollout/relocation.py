"""Finds other nodes on which a group fits, or the reason why it fits on no node. Pure.

The estimate is as optimistic as the built-in gang gate (`core/gang/fit.py`), and includes exclusive topology, bound
volumes and preemption. Therefore, a group that does not fit will not fit unless a node is added. The scheduler may
select other nodes.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, placement, podclaims, podstate
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.placement import NodeTerm
from kuberuntime.objects.selectors import Operator, Requirement
from leaderworkerset.api import labels
from leaderworkerset.decisions.nodefit import Amounts, Need, fit_obstacle, free_space, read_need, read_requests
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count, join_names

NAMED_NODES: Final = 3
"""The maximum number of nodes that are listed for each reason and as destinations."""

TOO_FEW: Final = "too few nodes have enough space, or their domains are in use"


class ClusterFacts(Struct, frozen=True, kw_only=True):
    """The nodes, the pods in all namespaces, and the volumes that are bound to claims."""

    nodes: Sequence[JSONObject]
    pods: Sequence[JSONObject]
    volumes: Mapping[ObjectKey, JSONObject] = {}
    """The PersistentVolumes by claim."""


class Relocation(Struct, frozen=True):
    """The number of pods that fit on each node, or the reason why the group does not fit."""

    pods: Mapping[str, int]
    obstacle: str = ""
    is_preempting: bool = False
    """Whether the group fits only if it preempts pods that have a lower priority."""

    def __str__(self) -> str:
        """Return the destinations, or the reason if there are none.

        >>> str(Relocation({"b": 1, "a": 2})), str(Relocation({}, "no other node exists"))
        ('it fits on a (2 pods), b (1 pod)', 'it does not fit on any other node (no other node exists)')
        """
        if self.obstacle:
            return f"it does not fit on any other node ({self.obstacle})"
        nodes = [f"{name} ({format_count(count, 'pod')})" for name, count in sorted(self.pods.items())]
        preempting = " after preemption of pods with a lower priority" if self.is_preempting else ""
        return f"it fits on {join_names(nodes, NAMED_NODES)}{preempting}"


def relocate(lws: JSONObject, group: Group, closed: Collection[str], cluster: ClusterFacts) -> Relocation:
    """Return the nodes except closed nodes on which a group fits after its pods are deleted."""
    nodes = [node for node in cluster.nodes if meta.name(node) not in closed]
    own = {rank.uid for rank in group.ranks}
    others = [pod for pod in cluster.pods if meta.uid(pod) not in own and _remains(pod)]
    needs = Counter(_rank_needs(lws, group, cluster))
    key = meta.annotations(lws).get(labels.EXCLUSIVE_TOPOLOGY, "")
    domains = free_domains(key, nodes, _nodes_of_groups(others, meta.namespace(lws))) if key else [nodes]
    least = _preemption_priority(group)
    used, used_by_rivals = node_usage(others), node_usage(pod for pod in others if _priority(pod) >= least)
    for amounts, domain in itertools.product((used, used_by_rivals), domains):
        if (pods := free_space(domain, amounts).distribute(needs)) is not None:
            return Relocation(pods, is_preempting=amounts is not used)
    if not nodes:
        return Relocation({}, "no other node exists")
    if not domains:
        return Relocation({}, f"every other {key} domain already has a group")
    return Relocation(
        {}, insufficient_resources([node for domain in domains for node in domain], used_by_rivals, needs)
    )


def unplaceable_groups(
    view: View, groups: Iterable[Group], closed: Collection[str], cluster: ClusterFacts
) -> Iterator[str]:
    """Yield a line for each group that fits on no schedulable node, even if no other group is moved."""
    for group in groups:
        if (outlook := relocate(view.object, group, closed, cluster)).obstacle:
            yield f"  {view.namespace}/{view.name}: group {group.name} would wait, because {outlook}"


def free_domains(
    key: str, nodes: Iterable[JSONObject], nodes_of_groups: AbstractSet[str]
) -> list[Sequence[JSONObject]]:
    """Return the nodes in topology domains that no group uses."""
    domains: dict[str, list[JSONObject]] = {}
    for node in nodes:
        if name := meta.labels(node).get(key, ""):
            domains.setdefault(name, []).append(node)
    return [part for part in domains.values() if not any(meta.name(node) in nodes_of_groups for node in part)]


def insufficient_resources(nodes: Sequence[JSONObject], used: Mapping[str, Amounts], needs: Iterable[Need]) -> str:
    """Return the reason why pods fit on no node, which is the insufficient resources for the first such pod.

    If each pod fits on some node, return the nodes without space for any pod, or that the remaining nodes are too few.
    """
    reasons = {
        need: {meta.name(node): fit_obstacle(node, used.get(meta.name(node), {}), need) for node in nodes}
        for need in needs
    }
    hopeless = next((need for need, of_node in reasons.items() if all(of_node.values())), None)
    regarded = [reasons[hopeless]] if hopeless is not None else list(reasons.values())
    lacking: dict[str, list[str]] = {}
    for name in regarded[0]:
        if all(of_node[name] for of_node in regarded):
            lacking.setdefault(regarded[0][name], []).append(name)
    texts = (f"{reason}: {join_names(names, NAMED_NODES)}" for reason, names in sorted(lacking.items()))
    return "; ".join(texts) or TOO_FEW


def node_usage(pods: Iterable[JSONObject]) -> dict[str, Amounts]:
    """Return the sum of the requests on each node."""
    sums: dict[str, Counter[str]] = {}
    for pod in pods:
        sums.setdefault(meta.spec(pod).get("nodeName") or "", Counter()).update(read_requests(pod))
    return dict(sums)


def _remains(pod: JSONObject) -> bool:
    return bool(meta.spec(pod).get("nodeName")) and not podstate.has_ended(pod) and not meta.is_deleting(pod)


def _nodes_of_groups(pods: Iterable[JSONObject], namespace: str) -> frozenset[str]:
    """Return the nodes that groups in a namespace use. Their topology domains are not available."""
    return frozenset(
        str(meta.spec(pod).get("nodeName"))
        for pod in pods
        if meta.namespace(pod) == namespace and labels.GROUP_KEY in meta.labels(pod)
    )


def _priority(pod: JSONObject) -> int:
    return int(meta.spec(pod).get("priority") or 0)


def _preemption_priority(group: Group) -> int:
    """Return the priority below which the group can preempt pods."""
    pods = [rank.object for rank in group.ranks if rank.object is not None]
    if any(meta.spec(pod).get("preemptionPolicy") == "Never" for pod in pods):
        return -(2**31)
    return min(map(_priority, pods))


def _rank_needs(lws: JSONObject, group: Group, cluster: ClusterFacts) -> Iterator[Need]:
    """Yield the requirements of each rank. If a rank has no pod, it has the requirements of the previous rank."""
    need: Need | None = None
    for rank in group.ranks:
        if rank.object is not None:
            need = _pod_need(lws, rank.object, cluster, is_leader=rank.index == 0)
        if need is not None:
            yield need


def _pod_need(lws: JSONObject, pod: JSONObject, cluster: ClusterFacts, *, is_leader: bool) -> Need:
    need = read_need(pod)
    if not is_leader:
        # Its nodeSelector contains the leader's domain, and a new leader has a different domain.
        key = meta.annotations(lws).get(labels.EXCLUSIVE_TOPOLOGY, "")
        need = replace(need, selector=tuple(label for label in need.selector if label.key != key))
    for terms in _volume_terms(lws, pod, cluster.volumes, is_leader=is_leader):
        nodes = (
            node for node in cluster.nodes if any(term.matches(meta.name(node), meta.labels(node)) for term in terms)
        )
        near = Requirement("metadata.name", Operator.IN, tuple(map(meta.name, nodes)))
        both = (replace(term, fields=(*term.fields, near)) for term in need.terms or (NodeTerm((), ()),))
        need = replace(need, terms=tuple(both))
    return need


def _volume_terms(
    lws: JSONObject, pod: JSONObject, volumes: Mapping[ObjectKey, JSONObject], *, is_leader: bool
) -> Iterator[tuple[NodeTerm, ...]]:
    """Yield the node affinity terms of volumes that a recreated pod reuses."""
    template = meta.spec(lws).get("leaderWorkerTemplate") or {}
    retention = template.get("persistentVolumeClaimRetentionPolicy") or {}
    if not is_leader and retention.get("whenDeleted") == "Delete":
        return
    passing = podclaims.ephemeral_templates(pod)
    for volume, claim in podclaims.claims_by_volume(pod).items():
        bound = volumes.get(ObjectKey(meta.namespace(pod), claim))
        required = (meta.spec(bound or {}).get("nodeAffinity") or {}).get("required")
        if required and volume not in passing:
            yield tuple(map(placement.read_node_term, required.get("nodeSelectorTerms") or []))


def group_claims(group: Group) -> frozenset[ObjectKey]:
    """Return the PersistentVolumeClaims of a group's pods."""
    pods = [rank.object for rank in group.ranks if rank.object is not None]
    return frozenset(
        ObjectKey(meta.namespace(pod), claim) for pod in pods for claim in podclaims.claims_by_volume(pod).values()
    )
