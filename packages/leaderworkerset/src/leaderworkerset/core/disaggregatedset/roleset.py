"""Builds the LeaderWorkerSet of one role in one slice (R-DS-14 to R-DS-18, R-DS-90).

Input: the DisaggregatedSet, the entry of the role, slice and revision. Output: the object to create. The user's
fields are copied, except the rollout strategy. Its budgets apply to the whole set, and admission would reject a
LeaderWorkerSet that has few groups and these budgets (Q-11, docs/adr/0011).
"""

from typing import assert_never

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, OwnerReference
from leaderworkerset.api.disaggregatedset import (
    APP,
    INITIAL_REPLICAS,
    REVISION,
    ROLE,
    SET_NAME,
    SLICE,
    PlacementPolicy,
    PlacementType,
)
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.policies.exclusive import with_term


class RolePlace(Struct, frozen=True):
    """The DisaggregatedSet, slice, revision and role of a LeaderWorkerSet."""

    set_name: str
    slice: int
    revision: str
    role: str

    @property
    def name(self) -> str:
        """Return the name of the LeaderWorkerSet."""
        return f"{self.set_name}-{self.slice}-{self.revision}-{self.role}"

    @property
    def legacy_name(self) -> str:
        """Return the LeaderWorkerSet name that was used by versions without slices."""
        return f"{self.set_name}-{self.revision}-{self.role}"

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels that only this controller sets (R-DS-16)."""
        return {
            SET_NAME: self.set_name,
            ROLE: self.role,
            SLICE: str(self.slice),
            REVISION: self.revision,
            APP: f"{self.set_name}-{self.slice}-{self.role}",
        }


def owner_reference(obj: JSONObject) -> OwnerReference:
    """Build an owner reference to a DisaggregatedSet that does not block its deletion."""
    reference = meta.controller_reference(obj)
    del reference["blockOwnerDeletion"]
    return reference


def build(
    obj: JSONObject, role: JSONObject, place: RolePlace, *, replicas: int, placement: PlacementPolicy
) -> JSONObject:
    """Build the LeaderWorkerSet. `role` is the entry in `spec.roles` and is not modified."""
    own: JSONObject = role.get("metadata") or {}
    annotations = {name: text for name, text in (own.get("annotations") or {}).items() if name != INITIAL_REPLICAS}
    metadata: JSONObject = {
        "name": place.name,
        "namespace": meta.namespace(obj),
        "labels": (own.get("labels") or {}) | place.labels,
        "ownerReferences": [owner_reference(obj)],
    }
    spec: JSONObject = {name: value for name, value in (role.get("spec") or {}).items() if name != "rolloutStrategy"}
    template: JSONObject = spec.get("leaderWorkerTemplate") or {}
    marked = {
        name: _pod_template(template.get(name) or {}, place, placement)
        for name in ("leaderTemplate", "workerTemplate")
        if name == "workerTemplate" or template.get(name) is not None
    }
    return {
        **LEADERWORKERSETS.type_meta,
        "metadata": metadata | ({"annotations": annotations} if annotations else {}),
        "spec": spec | {"replicas": replicas, "leaderWorkerTemplate": template | marked},
    }


def _pod_template(template: JSONObject, place: RolePlace, placement: PlacementPolicy) -> JSONObject:
    """Return a pod template with the labels and affinity for the placement policy."""
    metadata: JSONObject = template.get("metadata") or {}
    marked = template | {"metadata": metadata | {"labels": (metadata.get("labels") or {}) | place.labels}}
    if not placement.is_exclusive or not placement.topology:
        return marked
    spec: JSONObject = template.get("spec") or {}
    affinity: JSONObject = spec.get("affinity") or {}
    for kind, expressions in _affinity_terms(place, placement):
        affinity = affinity | {kind: with_term(affinity, kind, expressions, placement.topology)}
    return marked | {"spec": spec | {"affinity": affinity}}


def _affinity_terms(place: RolePlace, placement: PlacementPolicy) -> list[tuple[str, list[JSONObject]]]:
    """Return the affinity terms in order (R-DS-90). The slice label defaults to 0."""
    same_set: JSONObject = {"key": SET_NAME, "operator": "In", "values": [place.set_name]}
    this_slice: JSONObject = {"key": SLICE, "operator": "In", "values": [str(place.slice)]}
    other_slice: JSONObject = {"key": SLICE, "operator": "NotIn", "values": [str(place.slice)]}
    has_slice: JSONObject = {"key": SLICE, "operator": "Exists"}
    others = [same_set, other_slice] if place.slice else [same_set, has_slice, other_slice]
    terms = [("podAffinity", [same_set, this_slice]), ("podAntiAffinity", others)]
    match placement.type:
        case PlacementType.EXCLUSIVE_TOPOLOGY:
            has_set: JSONObject = {"key": SET_NAME, "operator": "Exists"}
            other_set: JSONObject = {"key": SET_NAME, "operator": "NotIn", "values": [place.set_name]}
            return [*terms, ("podAntiAffinity", [has_set, other_set, has_slice])]
        case PlacementType.EXCLUSIVE_SLICE | PlacementType.NONE | None:
            return terms
        case _:
            assert_never(placement.type)
