"""Exclusive placement: the affinity terms that give a group, or a subgroup, a topology domain of its own (R-ADM-14)."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.core.policies.edits import with_spec

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def with_exclusive_terms(pod: JSONObject, *, key: str, value: str, topology_key: str) -> JSONObject:
    """Return the pod with affinity to pods whose label `key` is `value`, and anti-affinity to pods with another value.

    The user's terms stay. A pod that already has both kinds of required terms on the topology is not changed.
    """
    affinity: JSONObject = meta.spec(pod).get("affinity") or {}
    if _has_term(affinity, "podAffinity", topology_key) and _has_term(affinity, "podAntiAffinity", topology_key):
        return pod
    same: list[JSONObject] = [{"key": key, "operator": "In", "values": [value]}]
    other: list[JSONObject] = [{"key": key, "operator": "Exists"}, {"key": key, "operator": "NotIn", "values": [value]}]
    changed = {
        "podAffinity": _with_term(affinity, "podAffinity", same, topology_key),
        "podAntiAffinity": _with_term(affinity, "podAntiAffinity", other, topology_key),
    }
    return with_spec(pod, {"affinity": affinity | changed})


def _terms(affinity: JSONObject, kind: str) -> list[JSONObject]:
    return (affinity.get(kind) or {}).get(_REQUIRED) or []


def _has_term(affinity: JSONObject, kind: str, topology_key: str) -> bool:
    return any(term.get("topologyKey") == topology_key for term in _terms(affinity, kind))


def _with_term(affinity: JSONObject, kind: str, expressions: list[JSONObject], topology_key: str) -> JSONObject:
    term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology_key}
    return (affinity.get(kind) or {}) | {_REQUIRED: [*_terms(affinity, kind), term]}
