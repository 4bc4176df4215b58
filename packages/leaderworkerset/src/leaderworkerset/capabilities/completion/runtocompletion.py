"""Completes a group without recreating it when its leader exits with code 0.

The containers of StatefulSet pods are always restarted. So a leader is finished when the last run of each container has
exited with code 0. Then the group is *over*, like a group that has exhausted its restarts. Its leader is marked and
kept by a finalizer, so that it is not replaced and its log can be read. Its workers are terminated. A group that is not
complete when its deadline passes is also over. Such groups are deleted when exhausted groups would be deleted: for a
new template, when scaled down, when a user recovers them, and with their set.

A group that hangs is recreated if its LeaderWorkerSet requests it. The recorder detects hangs
(`recording/progressfollower.py`) and writes them to the leader.

Input: a live group, or the observed state of a LeaderWorkerSet. Output: the writes, or the time of the next decision.
The reasons are in docs/adr/0026-progress-and-completion.md.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, assert_never

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.plan import Delete, EventType, Patch, guarded_delete
from leaderworkerset.api import groupname, labels, progressannotations, runsettings
from leaderworkerset.api.conditions import COMPLETE, FAILED
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.recreationrecord import Failure
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.api.runsettings import RunSettings
from leaderworkerset.core import decisionevents
from leaderworkerset.core.extensions import SetExpiry
from leaderworkerset.core.leaderworkerset.decision import SetFacts
from leaderworkerset.core.policies import restartpolicy
from leaderworkerset.core.policies.failures import NO_FAULT, Fault
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup, PolicyDecision
from leaderworkerset.core.restarts import retention

FINISHED_FOR_KUEUE: Final = {labels.POD_GROUP_SERVING: None, labels.RETRIABLE_IN_GROUP: "false"}
"""The annotations that Kueue uses to finish a group.

A serving group is never finished (R-KQ-12). Other groups are finished when none of their pods is running and a pod must
not be retried (R-KQ-34).
"""

EXPIRED: Final = decisionevents.EventKind("Normal", "TTLAfterFinished", "Delete")
"""A finished LeaderWorkerSet was deleted because its time to live has expired."""


def settings_of(lws: LeaderWorkerSet) -> RunSettings:
    """Return the settings of a LeaderWorkerSet. Groups with random keys do not run to completion."""
    settings = runsettings.read(lws.metadata.annotations)
    return runsettings.OFF if settings.runs_to_completion and lws.spec.group_identity.is_hash else settings


def has_succeeded(pod: JSONObject) -> bool:
    """Return whether the last completed run of each container exited with code 0.

    This includes containers that have been restarted since. Init containers and sidecars do not count.
    """
    statuses = meta.status(pod).get("containerStatuses") or []
    return bool(statuses) and all(_last_exit(status) == 0 for status in statuses)


def excuses(lws: LeaderWorkerSet | None, pod: JSONObject, _container: JSONObject) -> bool:
    """Return whether restarts are ignored, because the pod runs to completion and none of its containers failed."""
    return lws is not None and settings_of(lws).runs_to_completion and not has_failed(pod)


def has_failed(pod: JSONObject) -> bool:
    """Return whether a container was restarted after an error, as opposed to exit code 0."""
    statuses = [
        status
        for kind in ("containerStatuses", "initContainerStatuses")
        for status in meta.status(pod).get(kind) or []
        if (status.get("restartCount") or 0) > 0
    ]
    return any(_last_exit(status) != 0 for status in statuses)


def _last_exit(status: JSONObject) -> int | None:
    for when in ("state", "lastState"):
        ended = (status.get(when) or {}).get("terminated")
        if ended is not None:
            code: int | None = ended.get("exitCode")
            return code
    return None


def group_result(
    lws: LeaderWorkerSet, leader: JSONObject, revisions: Iterable[JSONObject], now: datetime
) -> GroupEnd | None:
    """Return the result of the leader's group if the group finishes now, or None if the group continues."""
    settings = settings_of(lws)
    if not settings.runs_to_completion:
        return None
    if has_succeeded(leader):
        return GroupEnd.COMPLETE
    left = remaining_time(settings, leader, revisions, now)
    return GroupEnd.LATE if left is not None and left <= timedelta() else None


def remaining_time(
    settings: RunSettings, leader: JSONObject, revisions: Iterable[JSONObject], now: datetime
) -> timedelta | None:
    """Return the time until the deadline of a group, or None if there is no deadline.

    It counts from the time at which the template of the leader was first desired.
    """
    key = groupname.revision_key(leader)
    began = [meta.creation_timestamp(revision) for revision in revisions if groupname.revision_key(revision) == key]
    if settings.deadline is None or not any(began):
        return None
    return timestamps.parse(min(filter(None, began))) + settings.deadline - now


def time_until_expiry(lws: LeaderWorkerSet, kinds: Iterable[str], now: datetime) -> timedelta | None:
    """Return the time until the LeaderWorkerSet is deleted, or None if it has no time to live.

    It is deleted if it has one of these conditions for its latest spec.
    """
    ttl, types = settings_of(lws).ttl, set(kinds)
    ended = [
        condition.last_transition_time
        for condition in lws.status.conditions
        if condition.type in types
        and condition.status == "True"
        and condition.observed_generation == lws.metadata.generation
    ]
    if ttl is None or not any(ended):
        return None
    return timestamps.parse(min(filter(None, ended))) + ttl - now


def preserve_finished_group(group: LiveGroup) -> PolicyDecision:
    """Terminate the pods of a marked group, unless they have terminated or a user has resumed the group."""
    leader, end = group.leader, groupname.group_result(group.leader)
    if end is None:
        return NOTHING
    is_done = meta.is_deleting(leader) or retention.is_recovered(leader)
    return PolicyDecision(
        delay_reason="the group has finished", actions=() if is_done else (_terminate_group(group, end),)
    )


def finish(group: LiveGroup) -> PolicyDecision:
    """Mark the leader of a finishing group, and then terminate the group.

    The container of the leader may be running again.
    """
    settings = settings_of(group.lws)
    if not settings.runs_to_completion:
        return NOTHING
    end = group_result(group.lws, group.leader, group.revisions, group.now)
    if end is not None:
        return PolicyDecision(
            delay_reason="the group is finishing",
            actions=(mark_finished(group.leader, end), _terminate_group(group, end)),
        )
    left = remaining_time(settings, group.leader, group.revisions, group.now)
    return NOTHING if left is None else PolicyDecision(requeue_after=left.total_seconds())


def mark_finished(leader: JSONObject, end: GroupEnd) -> Patch:
    """Mark and preserve the leader of a finished group. Kueue then also finishes the Workload."""
    marks = {labels.GROUP_ENDED: end.value, labels.RECOVER: None}
    marks |= FINISHED_FOR_KUEUE if labels.QUEUE_NAME in meta.labels(leader) else {}
    return retention.metadata_patch(leader, {"annotations": marks, "finalizers": [retention.FINALIZER]})


def _terminate_group(group: LiveGroup, end: GroupEnd) -> Delete:
    name, index = meta.name(group.leader), groupname.group_label(group.leader)
    match end:
        case GroupEnd.COMPLETE:
            kind: EventType = "Normal"
            note = f"Leader pod {name} has exited with code 0: group {index} is complete"
        case GroupEnd.LATE:
            kind = "Warning"
            note = f"Terminated group {index} because it was not complete at its deadline"
        case _:
            assert_never(end)
    ended = decisionevents.EventKind(kind, f"Group{end.value}", "Delete")
    return restartpolicy.delete_leader(group, ended(group.obj, note, group.leader))


def expire(facts: SetFacts, now: datetime) -> SetExpiry:
    """Delete a LeaderWorkerSet whose time to live has expired, or return the remaining time."""
    if labels.TTL_AFTER_FINISHED not in facts.lws.metadata.annotations:
        return SetExpiry()
    left = time_until_expiry(facts.lws, (COMPLETE.type, FAILED.type), now)
    if left is None or left > timedelta():
        return SetExpiry(seconds=None if left is None else left.total_seconds())
    note = f"Deleted LeaderWorkerSet {facts.lws.name} because its time to live after completion expired"
    expired = EXPIRED(facts.obj, note)
    return SetExpiry((guarded_delete(LEADERWORKERSETS, facts.obj, on_success=(expired,)),))


def hang_failure(obj: JSONObject, leader: JSONObject) -> Failure | None:
    """Return the failure of the longest stalled rank, or None if the group does not hang.

    Return None unless the LeaderWorkerSet requests the recreation of such groups.
    """
    settings = runsettings.read(meta.annotations(obj))
    hang = progressannotations.parse_hang(meta.annotations(leader).get(labels.HANG, "")) if settings.recreates else None
    if hang is None:
        return None
    blamed, timeout = hang.longest_silent_rank, settings.timeout
    waits = f", waits for {blamed.waits}" if blamed.waits else ""
    length = 0 if timeout is None else int(timeout.total_seconds())
    return Failure(pod=blamed.pod, uid=UID(blamed.uid), description=f"no progress for {length} s{waits}")


def find_hang(group: LiveGroup) -> Fault:
    """Return the failure of a hanging group."""
    if labels.HANG not in meta.annotations(group.leader):
        return NO_FAULT
    return Fault(failure=hang_failure(group.obj, group.leader))
