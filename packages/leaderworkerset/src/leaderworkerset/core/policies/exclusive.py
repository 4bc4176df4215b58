"""Places each group in a separate topology domain, and workers in the domain of their leader.

The topology key is an annotation of the LeaderWorkerSet, and is copied to templates. A leader gets affinity terms at
admission (R-ADM-14). Workers wait until their leader is bound to a node, and get its domain as node selector
(R-WSTS-6).
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.policies.celmutations import (
    LEADER,
    PodRule,
    add,
    annotation,
    conditional_patches,
    has_annotation,
    string_literal,
)
from leaderworkerset.core.policies.podedits import non_empty, with_spec
from leaderworkerset.core.policies.policy import LiveGroup, Member, Policy, PolicyDecision, Template

AWAITS_NODE: Final = "waits for the leader to be bound to a node (exclusive placement)"


class PlacementError(ValueError):
    """The leader's node was deleted or does not have the topology label."""


def is_exclusive(lws: LeaderWorkerSet) -> bool:
    """Return whether each group has a separate topology domain. The annotation can be empty."""
    return labels.EXCLUSIVE_TOPOLOGY in lws.metadata.annotations


def node_name(pod: JSONObject) -> str:
    """Return the node of the pod, or an empty string if the pod is not bound."""
    return str(meta.spec(pod).get("nodeName") or "")


def node_selector(lws: LeaderWorkerSet, leader: JSONObject, node: JSONObject | None) -> dict[str, str]:
    """Return the node selector for the leader's domain. `node` is None if the leader's node was deleted."""
    if not is_exclusive(lws):
        return {}
    name, topology = node_name(leader), lws.metadata.annotations[labels.EXCLUSIVE_TOPOLOGY]
    if node is None:
        raise PlacementError(f'getting node "{name}": nodes "{name}" not found')
    if topology not in meta.labels(node):
        raise PlacementError(f"node does not have topology label: {topology} (node {name})")
    return {topology: meta.labels(node)[topology]}


def annotations(template: Template) -> dict[str, str]:
    """Return the topology key."""
    return non_empty(template.live, labels.EXCLUSIVE_TOPOLOGY)


def admit(pod: JSONObject, member: Member) -> JSONObject:
    """Return a leader with anti-affinity to domains of other groups. Workers have a node selector."""
    topology_key = meta.annotations(pod).get(labels.EXCLUSIVE_TOPOLOGY)
    if topology_key is None or not member.is_leader:
        return pod
    value = meta.labels(pod)[labels.GROUP_KEY]
    return with_exclusive_terms(pod, key=labels.GROUP_KEY, value=value, topology_key=topology_key)


def decide(group: LiveGroup) -> PolicyDecision:
    """Delay the workers until the leader is bound, and select its domain.

    Raise `PlacementError` if there is no domain.
    """
    if is_exclusive(group.lws) and not node_name(group.leader):
        return PolicyDecision(delay_reason=AWAITS_NODE)
    return PolicyDecision(
        node_selector=node_selector(group.lws, group.leader, group.nodes.get(node_name(group.leader)))
    )


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_KINDS: Final = ("podAffinity", "podAntiAffinity")


def with_exclusive_terms(pod: JSONObject, *, key: str, value: str, topology_key: str) -> JSONObject:
    """Return the pod with affinity to pods with the label value, and anti-affinity to other values (R-ADM-14).

    The user's terms are kept. A pod that already has both kinds of required terms for the topology is not changed.
    """
    affinity: JSONObject = meta.spec(pod).get("affinity") or {}
    if all(_has_term(affinity, kind, topology_key) for kind in _KINDS):
        return pod
    same: list[JSONObject] = [{"key": key, "operator": "In", "values": [value]}]
    other: list[JSONObject] = [{"key": key, "operator": "Exists"}, {"key": key, "operator": "NotIn", "values": [value]}]
    changed = {
        "podAffinity": with_term(affinity, "podAffinity", same, topology_key),
        "podAntiAffinity": with_term(affinity, "podAntiAffinity", other, topology_key),
    }
    return with_spec(pod, {"affinity": affinity | changed})


def _terms(affinity: JSONObject, kind: str) -> list[JSONObject]:
    return (affinity.get(kind) or {}).get(_REQUIRED) or []


def _has_term(affinity: JSONObject, kind: str, topology_key: str) -> bool:
    return any(term.get("topologyKey") == topology_key for term in _terms(affinity, kind))


def with_term(affinity: JSONObject, kind: str, expressions: list[JSONObject], topology_key: str) -> JSONObject:
    """Return this kind of affinity with an additional required term."""
    term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology_key}
    return (affinity.get(kind) or {}) | {_REQUIRED: [*_terms(affinity, kind), term]}


def term_rule(condition: str, *, key: str, value: str, topology: str) -> str:
    """Return an expression with one term if a condition is true, or without terms otherwise.

    `value` is an expression, `topology` an annotation.
    """
    topology_key = annotation(topology)
    has_all = " && ".join(f"{_terms_rule(kind)}.exists(term, term.topologyKey == {topology_key})" for kind in _KINDS)
    term = f'{{"key": {string_literal(key)}, "value": {value}, "topologyKey": {topology_key}}}'
    return f"({condition}) && {has_annotation(topology)} && !({has_all}) ? [{term}] : []"


def patch_rule(terms: str) -> str:
    """Return patches that append terms (an expression) to the affinity of a pod."""
    same = '[{"key": dyn(term.key), "operator": dyn("In"), "values": dyn([term.value])}]'
    other = (
        '[{"key": dyn(term.key), "operator": dyn("Exists")},'
        ' {"key": dyn(term.key), "operator": dyn("NotIn"), "values": dyn([term.value])}]'
    )
    parts = [conditional_patches("!has(object.spec.affinity)", add(string_literal("/spec/affinity"), "{}"))]
    for kind, expressions in zip(_KINDS, (same, other), strict=True):
        path = f"/spec/affinity/{kind}"
        parts.append(conditional_patches(f"!object.spec.?affinity.?{kind}.hasValue()", add(string_literal(path), "{}")))
        is_absent = f"!object.spec.?affinity.?{kind}.?{_REQUIRED}.hasValue()"
        parts.append(conditional_patches(is_absent, add(string_literal(f"{path}/{_REQUIRED}"), "[]")))
        term = f'{{"labelSelector": dyn({{"matchExpressions": {expressions}}}), "topologyKey": dyn(term.topologyKey)}}'
        parts.append(f"({terms}).map(term, {add(string_literal(f'{path}/{_REQUIRED}/-'), term)})")
    return f"(size({terms}) == 0 ? [] : {' + '.join(parts)})"


def _terms_rule(kind: str) -> str:
    return f"object.spec.?affinity.?{kind}.?{_REQUIRED}.orValue([])"


RULE: Final = PodRule(
    variables={
        "groupTerms": term_rule(
            LEADER, key=labels.GROUP_KEY, value="variables.groupKey", topology=labels.EXCLUSIVE_TOPOLOGY
        )
    }
)
"""The affinity terms of the group. The subgroup policy adds them to the pod together with its own terms."""

POLICY: Final = Policy(annotations=annotations, admit=admit, rule=RULE)
