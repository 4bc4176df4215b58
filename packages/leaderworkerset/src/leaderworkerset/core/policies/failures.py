"""Finds pod failures that require recreating a group (R-POD-3 to R-POD-5, R-POD-8).

Input: the LeaderWorkerSet, the leader pod, the pods of its group (also recently deleted pods, in their last state)
and their StatefulSets. Output: the failed pod, if the restart policy requires the recreation of the group.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject, OwnerReference
from kuberuntime.plan import Action
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.recreationrecord import Failure
from leaderworkerset.core.policies.policy import LiveGroup

RESTARTING_PHASES: Final = {"Pending", "Running"}


RestartExemption: TypeAlias = Callable[[LeaderWorkerSet | None, JSONObject, JSONObject], bool]
"""Returns whether container restarts are ignored. Without a LeaderWorkerSet, its settings do not apply."""


class Fault(Struct, frozen=True, kw_only=True):
    """A group failure without a failed pod, or alternative actions, and the seconds until the next reconciliation."""

    failure: Failure | None = None
    actions: tuple[Action, ...] = ()
    remaining_time: timedelta | None = None


NO_FAULT: Final = Fault()
"""The group has no other failure."""

FindFault: TypeAlias = Callable[[LiveGroup], Fault]
"""Returns a reason to recreate a group without a failed pod."""


def recreates_groups(lws: LeaderWorkerSet) -> bool:
    """Return whether the restart policy can recreate groups (R-POD-3)."""
    return lws.spec.leader_worker_template.restart_policy.recreates


def failed_pods(lws: LeaderWorkerSet, live: LiveGroup, excuses: Sequence[RestartExemption] = ()) -> list[JSONObject]:
    """Return the pods whose failures require recreating the group. `excuses` is the same as for `has_failed`."""
    if not recreates_groups(lws):
        return []
    group, is_strict = _Group(live), not waits_for_start(lws)
    suspects = (pod for pod in (live.leader, *live.objects.pods) if has_failed(pod, lws, excuses))
    return [
        pod
        for pod in (*live.objects.deleted, *suspects)
        if group.contains(pod) and (is_strict or not group.was_pending(pod, lws.size))
    ]


def current_pods(live: LiveGroup) -> list[JSONObject]:
    """Return the pods of this leader, but not of a previous leader."""
    group = _Group(live)
    return [pod for pod in live.objects.pods if group.contains(pod)]


def has_failed(pod: JSONObject, lws: LeaderWorkerSet | None = None, excuses: Sequence[RestartExemption] = ()) -> bool:
    """Return whether the pod is terminating, or a container restart is not ignored (R-POD-4)."""
    if meta.is_deleting(pod):
        return True
    return meta.status(pod).get("phase") in RESTARTING_PHASES and has_restarted(pod, lws, excuses)


def has_restarted(
    pod: JSONObject, lws: LeaderWorkerSet | None = None, excuses: Sequence[RestartExemption] = ()
) -> bool:
    """Return whether a container was restarted, and the restart is not ignored."""
    restarted = (status for status in podstate.container_statuses(pod) if (status.get("restartCount") or 0) > 0)
    return any(not any(excuse(lws, pod, status) for excuse in excuses) for status in restarted)


def has_failed_member(
    lws: LeaderWorkerSet,
    leader: JSONObject,
    workers: JSONObject | None,
    pods: Iterable[JSONObject],
    excuses: Sequence[RestartExemption] = (),
) -> bool:
    """Return whether one of these pods is a failed group member. The deletion of the leader is not a failure."""
    statefulsets = {} if workers is None else {meta.name(workers): workers}
    return any(
        has_failed(pod, lws, excuses)
        for pod in pods
        if _is_member(pod, leader, statefulsets) and not (groupname.is_leader(pod) and meta.is_deleting(pod))
    )


def waits_for_start(lws: LeaderWorkerSet) -> bool:
    """Return whether failures are ignored while the group has pending pods (R-POD-5.2)."""
    policy = lws.spec.leader_worker_template.restart_policy
    return policy.tolerates_start or labels.RECREATE_GROUP_AFTER_START in lws.metadata.annotations


class _Group:
    """A group with its pod count and its StatefulSets by name. Each pod can be checked in constant time."""

    def __init__(self, live: LiveGroup) -> None:
        self._leader = live.leader
        self._pods = {meta.key(pod): _is_phase_pending(pod) for pod in live.objects.pods}
        self._pending = sum(self._pods.values())
        self._statefulsets = {
            meta.name(statefulset): statefulset for statefulset in reversed(live.objects.statefulsets)
        }

    def was_pending(self, failed: JSONObject, size: int) -> bool:
        """Return whether the group had missing or pending pods at the time of the failure (R-POD-5.1)."""
        known = self._pods.get(meta.key(failed))
        others = len(self._pods) - (known is not None)
        pending = self._pending - bool(known) + _is_phase_pending(failed)
        return others + 1 != size or pending > 0

    def contains(self, pod: JSONObject) -> bool:
        """Return whether the pod is a member of the group."""
        return _is_member(pod, self._leader, self._statefulsets)


def _is_member(pod: JSONObject, leader: JSONObject, statefulsets: Mapping[str, JSONObject]) -> bool:
    """Return whether the pod is the leader or one of its workers (R-POD-5.3, R-POD-8).

    During an in-place update, the pods get the new revision one after the other, the leader last.
    """
    if meta.uid(pod) == meta.uid(leader):
        return True
    is_same = groupname.revision_key(pod) == groupname.revision_key(leader)
    if not is_same and labels.IN_PLACE_REVISION not in meta.annotations(leader):
        return False
    owner = meta.controller_of(pod)
    if owner is None or owner["kind"] != "StatefulSet":
        return groupname.leader_name(pod) == meta.name(leader) and _is_leader(owner, leader)
    statefulset = statefulsets.get(owner["name"])
    return (
        statefulset is not None
        and meta.uid(statefulset) == owner["uid"]
        and _is_leader(meta.controller_of(statefulset), leader)
    )


def _is_phase_pending(pod: JSONObject) -> bool:
    return bool(meta.status(pod).get("phase") == "Pending")


def _is_leader(owner: OwnerReference | None, leader: JSONObject) -> bool:
    return owner is not None and (owner["kind"], owner["name"], owner["uid"]) == (
        "Pod",
        meta.name(leader),
        meta.uid(leader),
    )
