"""Reads the LeaderWorkerSets of a DisaggregatedSet by slice, revision and role (R-DS-14 to R-DS-16).

Input: LeaderWorkerSets that have the set's name as a label. Output: the LeaderWorkerSets that the set controls, as
`RolePart` values. Labels identify an object; names are never parsed. An object without a slice label was created
before slices existed, and belongs to slice 0.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from leaderworkerset.api import groupname
from leaderworkerset.api.disaggregatedset import INITIAL_REPLICAS, REVISION, ROLE, SLICE
from leaderworkerset.api.policytypes import GroupReplacementPolicy


class RolePart(Struct, frozen=True, kw_only=True):
    """A LeaderWorkerSet with the groups of one role in one slice at one revision."""

    key: ObjectKey
    uid: UID
    role: str
    revision: str
    slice: int | None
    """The slice, or None if the label is not a number. The object is then ignored."""
    is_legacy: bool
    is_deleting: bool
    created_at: str
    replicas: int
    initial_replicas: int | None
    """The initial number of groups in the rollout that replaces this revision, or None if it is not recorded."""
    created_replicas: int
    ready_replicas: int
    updated_replicas: int
    replacement_policy: str = ""
    """The replacement policy of groups with random keys, or empty for groups with ordinals."""
    termination_policy: str | None = None
    """The termination policy in the spec, or None if an annotation specifies it."""

    @property
    def baseline(self) -> int:
        """Return the initial number of groups in a rollout (R-DS-40)."""
        return self.replicas if self.initial_replicas is None else self.initial_replicas

    @property
    def is_stable(self) -> bool:
        """Return whether all desired groups are ready (R-DS-37)."""
        return self.ready_replicas == self.replicas and not self.is_deleting


def owned_sets(objects: Iterable[JSONObject], owner: UID) -> list[RolePart]:
    """Return the LeaderWorkerSets that a DisaggregatedSet controls (R-DS-71), sorted by name."""
    return sorted((read_part(obj) for obj in objects if is_owned(obj, owner)), key=lambda part: part.key)


def is_owned(obj: JSONObject, owner: UID) -> bool:
    """Return whether the controller of the object has this UID."""
    reference = meta.controller_of(obj)
    return bool(owner) and reference is not None and reference["uid"] == owner


def read_part(obj: JSONObject) -> RolePart:
    """Return the `RolePart` of a LeaderWorkerSet."""
    labels, spec, status = meta.labels(obj), meta.spec(obj), meta.status(obj)
    return RolePart(
        key=meta.key(obj),
        uid=meta.uid(obj),
        role=labels.get(ROLE, ""),
        revision=labels.get(REVISION, ""),
        slice=slice_index(obj),
        is_legacy=not labels.get(SLICE),
        is_deleting=meta.is_deleting(obj),
        created_at=meta.creation_timestamp(obj),
        replicas=_count(spec.get("replicas"), 1),
        initial_replicas=decimals.natural(meta.annotations(obj).get(INITIAL_REPLICAS, "")),
        created_replicas=_count(status.get("replicas"), 0),
        ready_replicas=_count(status.get("readyReplicas"), 0),
        updated_replicas=_count(status.get("updatedReplicas"), 0),
        replacement_policy=spec.get("groupReplacementPolicy") or GroupReplacementPolicy.POST_TERMINATION
        if groupname.uses_random_keys(obj)
        else "",
        termination_policy=spec.get("podTerminationPolicy"),
    )


def slice_index(obj: JSONObject) -> int | None:
    """Return the slice label, or 0 if it is absent. Return None if it is not a number."""
    return decimals.natural(meta.labels(obj).get(SLICE) or "0")


def group_by_revision(parts: Iterable[RolePart]) -> list[list[RolePart]]:
    """Return the parts by revision, latest first (R-DS-62).

    Revisions with the same creation time are sorted by name.
    """
    revisions: dict[str, list[RolePart]] = {}
    for part in parts:
        revisions.setdefault(part.revision, []).append(part)
    return sorted(
        revisions.values(), key=lambda parts: (max(part.created_at for part in parts), parts[0].revision), reverse=True
    )


def total_replicas(parts: Sequence[RolePart], role: str) -> int:
    """Return the desired number of groups of a role."""
    return sum(part.replicas for part in parts if part.role == role)


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) else default
