"""Terminates the workers of a group together with the leader, and not after it, if enabled (N-PT-1).

A StatefulSet that is scaled down or rolled out deletes only the leader. The garbage collector then deletes the workers
after the grace period of the leader, once the leader is deleted. A leader that is deleted in the foreground needs no
action, because the garbage collector deletes its workers immediately.

Input: a live group. If its LeaderWorkerSet is deleted, the annotation with which its worker StatefulSet was created
counts. Output: the deletion of that StatefulSet. See docs/adr/0025-places-and-ends.md.
"""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.plan import Delete
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.policytypes import WITH_PARALLEL_END, PodTerminationPolicy
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup, PolicyDecision

FOREGROUND: Final = "foregroundDeletion"
"""The finalizer for foreground deletion. The garbage collector then deletes dependents first."""


FIELD: Final = "podTerminationPolicy"
"""The name of the spec field. The annotation is used only if the field is absent."""


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the error of the annotation. Invalid stored values are ignored."""
    key = labels.POD_TERMINATION_POLICY
    text = lws.metadata.annotations.get(key)
    if text is not None and text not in tuple(PodTerminationPolicy):
        yield invalid(f"metadata.annotations.{key}", text, f"must be {' or '.join(PodTerminationPolicy)}")


def is_parallel(lws: JSONObject, workers: JSONObject) -> bool:
    """Return whether workers terminate with their leader.

    Without a LeaderWorkerSet, the StatefulSet contains the setting.
    """
    policy = meta.spec(lws).get(FIELD) or meta.annotations(lws or workers).get(labels.POD_TERMINATION_POLICY)
    return policy in WITH_PARALLEL_END


def delete_workers(group: LiveGroup) -> PolicyDecision:
    """Delete the workers of a terminating leader, if they must terminate with it (N-PT-2, N-PT-3)."""
    leader, workers = group.leader, group.workers
    if not meta.is_deleting(leader) or FOREGROUND in (meta.metadata(leader).get("finalizers") or []):
        return NOTHING
    if workers is None or meta.is_deleting(workers) or not meta.is_controlled(workers, leader):
        return NOTHING
    if not is_parallel(group.obj, workers):
        return NOTHING
    deletion = Delete(resource=STATEFULSETS, key=meta.key(workers), propagation="Foreground", uid=meta.uid(workers))
    return PolicyDecision(actions=(deletion,))
