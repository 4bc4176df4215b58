"""Preserves the terminated pods of an exhausted group with a finalizer (N-RB-4, N-RB-16).

The leader of a group that ran to completion is kept in the same way.

A group is *exhausted* when its leader is marked. Its pods are then terminated and remain as objects, so that their last
states and logs can be read. The group is *released* by a user's annotation, or if it would be deleted anyway.

Input: pods. Output: one patch for each pod, with its UID. Other finalizers are preserved.
"""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Patch, concurrently, identified_patch
from leaderworkerset.api import groupname, labels

FINALIZER: Final = labels.GROUP_RESTART_BUDGET_CLEANUP
TRUE: Final = "true"


def is_recovered(leader: JSONObject) -> bool:
    """Return whether a user has resumed the leader's group."""
    return meta.annotations(leader).get(labels.RECOVER) == TRUE


def is_retained(pod: JSONObject) -> bool:
    """Return whether the pod has the finalizer."""
    return FINALIZER in (meta.metadata(pod).get("finalizers") or [])


def exhaust(leader: JSONObject) -> Patch:
    """Mark and preserve the leader. Earlier requests to resume the group are ignored."""
    marks = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: TRUE, labels.RECOVER: None}
    return metadata_patch(leader, {"annotations": marks, "finalizers": [FINALIZER]})


def add_finalizer(pods: Sequence[JSONObject]) -> tuple[Action, ...]:
    """Add the finalizer to pods without it. Finalizers cannot be added to terminating pods."""
    added = [pod for pod in pods if not is_retained(pod) and not meta.is_deleting(pod)]
    return concurrently(metadata_patch(pod, {"finalizers": [FINALIZER]}) for pod in added)


def remove_finalizer(pods: Sequence[JSONObject]) -> tuple[Action, ...]:
    """Remove the finalizer from the pods of groups.

    Start with workers, and then remove it with the marks from leaders.
    """
    leaders = [pod for pod in pods if groupname.is_finished(pod)]
    workers = [pod for pod in pods if not groupname.is_finished(pod)]
    return (*concurrently(map(release_pod, workers)), *concurrently(map(release_pod, leaders)))


def release_pod(pod: JSONObject) -> Patch:
    """Remove the finalizer from one pod. For a leader, also remove the marks."""
    marks = {labels.GROUP_RESTART_BUDGET_EXHAUSTED: None, labels.RECOVER: None}
    marks |= {labels.GROUP_ENDED: None} if groupname.group_result(pod) is not None else {}
    return metadata_patch(pod, _WITHOUT | ({"annotations": marks} if groupname.is_finished(pod) else {}))


_WITHOUT: Final[JSONObject] = {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}


def metadata_patch(pod: JSONObject, metadata: JSONObject) -> Patch:
    """Return a metadata patch for a pod, in which lists are merged."""
    return identified_patch(PODS, pod, {"metadata": metadata}, kind="strategic", if_present=True)
