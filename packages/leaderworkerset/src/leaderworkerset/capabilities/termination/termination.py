"""Termination: if a set requests it, the workers of a group end together with their leader, not after it (N-PT-1).

A StatefulSet that is scaled down or rolled out deletes only the leader. The garbage collector then deletes the workers
after the grace period of the leader, once the leader is deleted. A leader that is deleted in the foreground needs no
action: the garbage collector deletes its workers at once.

In: a live group. If its LeaderWorkerSet is deleted, the annotation with which its worker StatefulSet was created
counts. Out: the deletion of that StatefulSet. The reasons for an annotation are in docs/adr/0025-places-and-ends.md.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, assert_never

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.plan import Delete
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup, PolicyDecision

FOREGROUND: Final = "foregroundDeletion"
"""The finalizer of an object whose dependents the garbage collector deletes before it."""


class PodTermination(StrEnum):
    """The time at which the workers of a group end: after their leader, or with it."""

    DEFAULT = "Default"
    PARALLEL = "Parallel"

    @property
    def is_parallel(self) -> bool:
        """Return whether the workers end together with their leader."""
        match self:
            case PodTermination.PARALLEL:
                return True
            case PodTermination.DEFAULT:
                return False
            case _:
                assert_never(self)


PARALLEL: Final = tuple(policy for policy in PodTermination if policy.is_parallel)


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the error of the annotation; a stored invalid value counts as absent."""
    key = labels.POD_TERMINATION_POLICY
    text = lws.annotations.get(key)
    if text is not None and text not in tuple(PodTermination):
        yield invalid(f"metadata.annotations.{key}", text, f"must be {' or '.join(PodTermination)}")


def is_parallel(annotations: Mapping[str, str]) -> bool:
    """Return whether the workers of groups with these annotations end together with their leader."""
    return annotations.get(labels.POD_TERMINATION_POLICY) in PARALLEL


def end_workers(group: LiveGroup) -> PolicyDecision:
    """Delete the workers of a leader that is being deleted, if they must end with it (N-PT-2, N-PT-3)."""
    leader, workers = group.leader, group.workers
    if not meta.is_deleting(leader) or FOREGROUND in (meta.metadata(leader).get("finalizers") or []):
        return NOTHING
    if workers is None or meta.is_deleting(workers) or not meta.is_controlled(workers, leader):
        return NOTHING
    if not is_parallel(meta.annotations(group.obj or workers)):
        return NOTHING
    deletion = Delete(resource=STATEFULSETS, key=meta.key(workers), propagation="Foreground", uid=meta.uid(workers))
    return PolicyDecision(actions=(deletion,))
