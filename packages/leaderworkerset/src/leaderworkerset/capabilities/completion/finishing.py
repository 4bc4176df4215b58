"""Runs to completion: a group whose leader has exited with code 0 is complete, and not recreated (docs/adr/0026-progress-and-completion.md).

Pods of StatefulSets are always started again, so the end of a leader is seen by the last run of its containers: all of them
have exited with code 0. Then the group is *over*, as one is that used up its restarts: its leader is marked and kept by a finalizer,
so that nobody replaces it and its log can be read; its workers end. A group that is not complete at the deadline of its set is
over, too. Groups that are over go when exhausted ones would: with a new template, scaled away, recovered, with their set.

In: the LeaderWorkerSet, a group. Out: how the group ends, if it does, and when that has to be looked at again.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, runsettings
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.runsettings import RunSettings


def settings_of(lws: LeaderWorkerSet) -> RunSettings:
    """Return the settings of a LeaderWorkerSet; groups with random keys do not run to completion."""
    found = runsettings.read(lws.annotations)
    return runsettings.OFF if found.completes and lws.spec.group_identity.is_hash else found


def has_succeeded(pod: JSONObject) -> bool:
    """Return whether the last ended run of every container exited with code 0; one that was started again since has ended.

    Containers of the phase before (init containers, and sidecars among them) do not count.
    """
    statuses = meta.status(pod).get("containerStatuses") or []
    return bool(statuses) and all(_last_exit(status) == 0 for status in statuses)


def excuses(lws: LeaderWorkerSet | None, pod: JSONObject, _container: JSONObject) -> bool:
    """Return whether restarts do not count: the pod runs to completion, and no container ended with an error."""
    return lws is not None and settings_of(lws).completes and not failed(pod)


def failed(pod: JSONObject) -> bool:
    """Return whether a container of a pod was started again after an error; one that had exited with code 0 did not fail."""
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


def end_of(lws: LeaderWorkerSet, leader: JSONObject, revisions: Iterable[JSONObject], now: datetime) -> GroupEnd | None:
    """Return how the group of a leader ends now, None while it goes on."""
    settings = settings_of(lws)
    if not settings.completes:
        return None
    if has_succeeded(leader):
        return GroupEnd.COMPLETE
    left = time_left(settings, leader, revisions, now)
    return GroupEnd.LATE if left is not None and left <= timedelta() else None


def time_left(
    settings: RunSettings, leader: JSONObject, revisions: Iterable[JSONObject], now: datetime
) -> timedelta | None:
    """Return the time to the deadline, which counts from when the template of the leader was first wanted; None without one."""
    key = groupname.revision(leader)
    began = [meta.created(one) for one in revisions if groupname.revision(one) == key]
    if settings.deadline is None or not any(began):
        return None
    return timestamps.parse(min(filter(None, began))) + settings.deadline - now


def expiry(lws: LeaderWorkerSet, kinds: Iterable[str], now: datetime) -> timedelta | None:
    """Return the time until a LeaderWorkerSet is deleted whose newest spec has one of these conditions; None if it is kept."""
    ttl, wanted = settings_of(lws).ttl, set(kinds)
    ended = [
        one.last_transition_time
        for one in lws.status.conditions
        if one.type in wanted and one.status == "True" and one.observed_generation == lws.generation
    ]
    if ttl is None or not any(ended):
        return None
    return timestamps.parse(min(filter(None, ended))) + ttl - now
