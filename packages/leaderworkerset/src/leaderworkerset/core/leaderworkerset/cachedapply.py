"""Caches results between reconciliations to avoid API requests.

The content of a revision depends only on `spec`, which changes only with `metadata.generation`. If a revision is
known to contain a generation, neither is reread. The desired leader StatefulSet depends on the LeaderWorkerSet's
generation and metadata, the revision key and the rollout step. If these and the existing StatefulSet are unchanged
since the last apply, the apply is skipped.

Input: objects. Output: small values, which the caller keeps between decisions. If they are missing after the manager
starts, the revision is compared once. The whole StatefulSet, which is not cached, is also compared once, and applied
only if it differs.
"""

from typing import NamedTuple

from kuberuntime.objects import appliedfields
from kuberuntime.objects.meta import UID, JSONObject, OwnerReference
from leaderworkerset.api import labels


class Identity(NamedTuple):
    """Object fields that change with every write, except for status and restart count writes."""

    uid: UID
    generation: int
    labels: dict[str, str]
    annotations: dict[str, str]
    owners: list[OwnerReference]

    @classmethod
    def from_object(cls, obj: JSONObject) -> "Identity":
        """Return the identity of the current object."""
        metadata = obj["metadata"]
        own, owners = metadata.get("annotations") or {}, metadata.get("ownerReferences") or []
        return cls(
            metadata.get("uid", ""),
            metadata.get("generation", 0),
            metadata.get("labels") or {},
            without_restart_counts(own),
            owners,
        )


class Source(NamedTuple):
    """The input for the leader StatefulSet, with the LeaderWorkerSet, the revision key, and the rollout step."""

    leaderworkerset: Identity
    key: str
    replicas: int
    partition: int


class LastApply(NamedTuple):
    """The input of the last apply of the leader StatefulSet, and the API server's response."""

    source: Source
    statefulset: Identity


def next_source(
    obj: JSONObject, key: str, replicas: int, partition: int, living: JSONObject | None, last: LastApply | None
) -> tuple[Source, bool]:
    """Return the source of the leader workload, and whether to apply it. An unchanged source is not applied again."""
    source = Source(Identity.from_object(obj), key, replicas, partition)
    return source, living is None or last != LastApply(source, Identity.from_object(living))


def matches_last_apply(desired: JSONObject, living: JSONObject, complete_workload: JSONObject) -> bool:
    """Return whether the complete leader workload matches the desired state, and the cache is current."""
    return Identity.from_object(complete_workload) == Identity.from_object(living) and appliedfields.is_applied(
        desired, complete_workload, labels.FIELD_MANAGER
    )


def without_restart_counts(annotations: dict[str, str]) -> dict[str, str]:
    """Return the annotations without the restart counts, which change often and do not affect other objects."""
    if labels.GROUP_RESTART_COUNTS not in annotations:
        return annotations
    return {key: text for key, text in annotations.items() if key != labels.GROUP_RESTART_COUNTS}
