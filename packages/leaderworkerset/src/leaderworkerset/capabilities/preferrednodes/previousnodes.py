"""Adds a node preference for the previous node of each rank to recreated pods, if the annotation is set.

| pod | source of its preferences | when |
|---|---|---|
| a leader | the record of its group, by the patch that opens its gate | it has a node only after that |
| a worker | an annotation of its StatefulSet's template, from the same record | at its admission |

The nodes are stored in the recreation record of the group (`recreation.py`), with a separate field manager. They are
written when all pods of a group have nodes. A node is avoided only if the group failed there twice in a row, because
the program may have caused a single failure. Both are preferences, so that a group starts on other nodes instead of
waiting. The reasons are in docs/adr/0025-places-and-ends.md.

Input: the LeaderWorkerSet, the record, live groups, pods at admission. Output: the record, and preferences of pods.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, names, ordinals
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from kuberuntime.plan import Apply
from leaderworkerset.api import groupname, labels, recreationrecord
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.recreationrecord import Origin
from leaderworkerset.core.leaderworkerset import groupstate
from leaderworkerset.core.policies import failures, recreation, replacement
from leaderworkerset.core.policies.celmutations import PodRule, has_annotation
from leaderworkerset.core.policies.placement import PREFERENCES
from leaderworkerset.core.policies.podedits import with_spec
from leaderworkerset.core.policies.policy import LiveGroup, Member, Policy

PREFERRED: Final = "Preferred"
"""The required value of the annotation."""

WEIGHT: Final = 100
"""The weight of each preference, which is the API maximum."""

LONGEST: Final = 64 * 1024
"""The maximum length of the joined node names. Nodes of higher ranks are not recorded."""

BLAMED_FROM: Final = 2
"""The number of consecutive recreations after which the node of the failed pod is avoided."""


class PreviousNodes(Struct, frozen=True):
    """The previous nodes of a group by rank, and the node to avoid. Both values can be empty."""

    nodes: tuple[str, ...] = ()
    avoided: str = ""

    def preferences(self, rank: int) -> list[JSONObject]:
        """Return the node preferences of the pod with this rank."""
        own = self.nodes[rank] if rank < len(self.nodes) else ""
        operators = [("In", own)] if own != self.avoided else []
        return [_preference(operator, node) for operator, node in (*operators, ("NotIn", self.avoided)) if node]


NOWHERE: Final = PreviousNodes()


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the error of the annotation. Invalid stored values are ignored."""
    key = labels.STAY_ON_NODES
    text = lws.metadata.annotations.get(key)
    if text is not None and text != PREFERRED:
        yield invalid(f"metadata.annotations.{key}", text, f"must be {PREFERRED}")


def prefers_previous_nodes(annotations: Mapping[str, str]) -> bool:
    """Return whether groups prefer their previous nodes."""
    return annotations.get(labels.STAY_ON_NODES) == PREFERRED


def previous_nodes(obj: JSONObject, record: JSONObject | None) -> PreviousNodes:
    """Return the previous nodes in the record of a group, if the LeaderWorkerSet enables this preference."""
    if record is None or not prefers_previous_nodes(meta.annotations(obj)) or meta.is_of_predecessor(record, obj):
        return NOWHERE
    places = _parse(meta.annotations(record))
    last = recreationrecord.read(record)
    is_last = last is not None and last.leader == meta.annotations(record).get(labels.FORMER_LEADER)
    if last is None or not is_last or last.count < BLAMED_FROM or last.failure.origin is not Origin.PROGRAM:
        return places
    rank = _rank_of(last.failure.pod, recreationrecord.leader_of(record))
    return PreviousNodes(places.nodes, places.nodes[rank] if rank is not None and rank < len(places.nodes) else "")


def gate_annotations(lws: LeaderWorkerSet, template: JSONObject | None) -> dict[str, str]:
    """Return the annotation that adds a scheduling gate to leaders. Preferences are added when the gate is removed.

    It changes only together with the revision, because the change alone would replace all groups.
    """
    annotations = lws.metadata.annotations if template is None else meta.annotations(template)
    return {labels.STAY_ON_NODES: PREFERRED} if prefers_previous_nodes(annotations) else {}


def leader_preferences(obj: JSONObject, leader: JSONObject, record: JSONObject | None) -> list[JSONObject]:
    """Return the node preferences of a leader based on the record of its group."""
    return with_preferences(leader, previous_nodes(obj, record), 0)


def worker_annotations(obj: JSONObject, record: JSONObject | None) -> dict[str, str]:
    """Return the worker template annotations based on the record of the group."""
    return node_annotations(previous_nodes(obj, record))


def record_nodes(group: LiveGroup) -> tuple[Apply, ...]:
    """Record the nodes of a group when all its pods are bound, unless they are already recorded."""
    leader = group.leader
    if not prefers_previous_nodes(meta.annotations(group.obj)):
        return ()
    size = groupstate.original_size(leader) or group.lws.size
    members = failures.current_pods(group)
    by_rank = {
        groupname.rank(pod): str(meta.spec(pod).get("nodeName") or "") for pod in members if not meta.is_deleting(pod)
    }
    if by_rank.keys() != set(range(size)) or "" in by_rank.values():
        return ()
    text = ",".join(node for _, node in sorted(by_rank.items()))
    text = text if len(text) <= LONGEST else text[: LONGEST + 1].rpartition(",")[0]
    noted = {labels.FORMER_NODES: text, labels.FORMER_LEADER: str(meta.uid(leader))}
    known = {} if group.record is None else meta.annotations(group.record)
    if all(known.get(key) == value for key, value in noted.items()):
        return ()
    return (
        Apply(
            resource=CONTROLLER_REVISIONS,
            object=recreation.build_record(group.obj, group.leader, noted),
            manager=labels.PLACES_MANAGER,
        ),
    )


def node_annotations(places: PreviousNodes) -> dict[str, str]:
    """Return the annotations for the worker template."""
    texts = {labels.FORMER_NODES: ",".join(places.nodes), labels.AVOIDED_NODE: places.avoided}
    return {key: text for key, text in texts.items() if text}


def admit(pod: JSONObject, member: Member) -> JSONObject:
    """Add the gate to a marked leader with an index. Replace the node list of a worker with node preferences."""
    if member.is_leader:
        is_gated = prefers_previous_nodes(meta.annotations(pod)) and not groupname.has_random_key(pod)
        return replacement.with_gate(pod) if is_gated else pod
    keys = {labels.FORMER_NODES, labels.AVOIDED_NODE}
    annotations = meta.annotations(pod)
    if not annotations.keys() & keys:
        return pod
    kept = {key: text for key, text in annotations.items() if key not in keys}
    plain = pod | {"metadata": meta.metadata(pod) | {"annotations": kept}}
    preferences = with_preferences(pod, _parse(annotations), member.worker_index)
    return _with_preferences(plain, preferences) if preferences else plain


def with_preferences(pod: JSONObject, places: PreviousNodes, rank: int) -> list[JSONObject]:
    """Return the pod's own preferences and the added preferences, or an empty value if none are added."""
    added = places.preferences(rank)
    nodes: JSONObject = (meta.spec(pod).get("affinity") or {}).get("nodeAffinity") or {}
    return [*(nodes.get(PREFERENCES) or []), *added] if added else []


def _with_preferences(pod: JSONObject, preferences: list[JSONObject]) -> JSONObject:
    affinity: JSONObject = meta.spec(pod).get("affinity") or {}
    nodes: JSONObject = affinity.get("nodeAffinity") or {}
    return with_spec(pod, {"affinity": affinity | {"nodeAffinity": nodes | {PREFERENCES: preferences}}})


RULE: Final = PodRule(
    conditions={
        "has-no-place": f"!({' || '.join(map(has_annotation, (labels.STAY_ON_NODES, labels.FORMER_NODES, labels.AVOIDED_NODE)))})"
    }
)
"""Whether the webhook must handle a pod, because the pod prefers nodes."""

POLICY: Final = Policy(admit=admit, rule=RULE)


def _parse(annotations: Mapping[str, str]) -> PreviousNodes:
    """Parse the previous nodes. Invalid node names are ignored, because users can set any annotation value."""
    nodes = tuple(_valid_node_name(text) for text in annotations.get(labels.FORMER_NODES, "")[:LONGEST].split(","))
    return PreviousNodes(nodes if any(nodes) else (), _valid_node_name(annotations.get(labels.AVOIDED_NODE, "")))


def _valid_node_name(text: str) -> str:
    return "" if names.dns_1123_subdomain(text) else text


def _rank_of(pod: str, leader: str) -> int | None:
    """Return the rank of a pod in the leader's group, based on the pod name."""
    ordinal = ordinals.split(pod)
    return 0 if pod == leader else None if ordinal is None else ordinal.number


def _preference(operator: str, node: str) -> JSONObject:
    field: JSONObject = {"key": "metadata.name", "operator": operator, "values": [node]}
    return {"weight": WEIGHT, "preference": {"matchFields": [field]}}
