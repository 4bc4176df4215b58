"""Finds workers that were deleted while no manager was running (docs/adr/0014-workers-lost-unseen.md).

While a manager runs, it writes the status as soon as a worker is deleted. So all groups were whole at the last
transition of `Available` to True, and when the status was last written, as many groups were whole as it counts. If
fewer groups are unchanged since then, other groups have lost workers, at most as many as are missing from the count.
Groups that changed visibly in the meantime, because their leader was deleted or a pod became unready, are also missing
from the count. If a worker is missing when a manager first observes the group, or was created after that time, its predecessor was deleted
while no manager was running.

Input: a LeaderWorkerSet and its groups, as a manager first observes them. Output: the deleted workers, in their last
state, as if their deletion had been observed.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import MAXYEAR, timedelta
from typing import Final

from msgspec import Struct, structs

from kuberuntime.objects import decimals, meta, podstate, timestamps
from kuberuntime.objects.meta import UID, JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import AVAILABLE

SKEW: Final = timedelta(minutes=1)
"""The maximum time by which the manager's clock (conditions) can lag behind the API server's clock (pods)."""

DRIFT: Final = timedelta(seconds=2)
"""The maximum clock difference of two API servers. etcd logs a warning if it exceeds one second."""

REASON: Final = "no manager was running"


class LastStatus(Struct, frozen=True, kw_only=True):
    """The last status.

    It contains the number of groups and of ready groups, the time since which all groups are ready, and the write time.

    `complete_since` is from a manager's clock, and `written_at` is from the API server's clock. A time is empty if it is
    unknown.
    """

    groups: int
    ready: int
    complete_since: str
    written_at: str


class CompletionTime(Struct, frozen=True):
    """The time (`at`) at which groups were complete. Workers created after `latest` did not exist at that time.

    `leaders` are the leaders of these groups. None means all older groups.
    """

    at: str
    latest: str
    leaders: frozenset[UID] | None = None


class ObservedGroup(Struct, frozen=True):
    """A leader, its worker StatefulSet, and the pods of the group, including the leader."""

    leader: JSONObject
    statefulset: JSONObject | None
    pods: Sequence[JSONObject]


def last_status(lws: JSONObject) -> LastStatus:
    """Return the content of a LeaderWorkerSet status when a manager first reads it."""
    writes = (entry for entry in meta.metadata(lws).get("managedFields") or [] if entry.get("subresource") == "status")
    return LastStatus(
        groups=int(meta.status(lws).get("replicas") or 0),
        ready=int(meta.status(lws).get("readyReplicas") or 0),
        complete_since=complete_since(lws),
        written_at=max((str(entry.get("time") or "") for entry in writes), default=""),
    )


def completion_times(
    last: LastStatus, groups: Iterable[ObservedGroup], ending: Iterable[JSONObject] = ()
) -> Sequence[CompletionTime]:
    """Return the times since which groups must be complete. `ending` are the failed and terminating leaders."""
    known, leaving = list(groups), list(ending)
    complete_since, written = _moment(last.complete_since, SKEW), _moment(last.written_at, _clock_lag(known))
    if written is not None:
        absent = max(last.groups - len(known) - len(leaving), 0)
        ready = last.ready - absent - sum(_ended_later(leader, written) for leader in leaving)
        written = None if any(map(_is_older_than_leader, known)) else _narrow(written, ready, known)
    return [moment for moment in (complete_since, written) if moment is not None]


def _ended_later(leader: JSONObject, moment: CompletionTime) -> bool:
    """Return whether the group of a failed or terminating leader may have been complete at a time."""
    requested = podstate.deletion_request_time(leader)
    return requested is None or timestamps.render(requested) >= moment.at


def _narrow(moment: CompletionTime, ready: int, groups: Sequence[ObservedGroup]) -> CompletionTime | None:
    """Return the time at which groups with lost workers were complete, or None if there are no such groups.

    A status counts groups without naming them. If more groups have younger workers than are missing from the count, the
    groups that were probably whole are first. They have older workers, or the oldest StatefulSet.
    """
    candidates = sorted(_candidates(groups, moment))
    candidate_leaders = {leader for *_, leader in candidates}
    others = [group for group in groups if meta.uid(group.leader) not in candidate_leaders]
    missing = max(
        ready - sum(_is_unchanged_since(group, moment) or _became_unready(group, moment) for group in others), 0
    )
    leaders = frozenset(leader for *_, leader in candidates[:missing])
    return structs.replace(moment, leaders=leaders) if leaders else None


def _candidates(groups: Iterable[ObservedGroup], moment: CompletionTime) -> Iterator[tuple[bool, str, UID]]:
    """Yield whether all workers of a group are lost, the creation time of its StatefulSet, and its leader."""
    for group in groups:
        if group.statefulset is not None and (names := deleted_workers(moment, group.statefulset, group.pods)):
            is_new = len(names) == meta.spec(group.statefulset).get("replicas")
            yield is_new, meta.creation_timestamp(group.statefulset), meta.uid(group.leader)


def _moment(at: str, granted: timedelta) -> CompletionTime | None:
    """Return the time, which other clients can modify, or None if it is invalid."""
    read = timestamps.read(at)
    if read is None or read.year >= MAXYEAR:
        return None
    return CompletionTime(timestamps.render(read), timestamps.render(read + granted))


def _clock_lag(groups: Iterable[ObservedGroup]) -> timedelta:
    """Return the maximum clock lag for StatefulSets and statuses. Workers are created after their StatefulSet."""
    delays = (
        timestamps.parse(meta.creation_timestamp(pod)) - timestamps.parse(meta.creation_timestamp(group.statefulset))
        for group in groups
        if group.statefulset is not None
        for pod in group.pods
        if meta.is_controlled(pod, group.statefulset)
    )
    return max(min((DRIFT, *delays)), timedelta())


def _is_older_than_leader(group: ObservedGroup) -> bool:
    """Return whether the StatefulSet appears older than its leader, because API server clocks differ."""
    return group.statefulset is not None and meta.creation_timestamp(group.statefulset) < meta.creation_timestamp(
        group.leader
    )


def _is_unchanged_since(group: ObservedGroup, moment: CompletionTime) -> bool:
    """Return whether all pods of a group existed at a time, and are now ready."""
    pods = (group.leader, *group.pods)
    if any(meta.creation_timestamp(pod) > moment.latest or not meta.is_condition_true(pod, "Ready") for pod in pods):
        return False
    if group.statefulset is None:
        return meta.annotations(group.leader).get(labels.SIZE) == "1"
    return meta.creation_timestamp(group.statefulset) <= moment.at and not deleted_workers(
        moment, group.statefulset, group.pods
    )


def _became_unready(group: ObservedGroup, moment: CompletionTime) -> bool:
    """Return whether a group, all of whose pods existed at a time, became unready later."""
    pods = (group.leader, *group.pods)
    conditions = (meta.find_condition(pod, "Ready") or {} for pod in pods)
    return all(meta.creation_timestamp(pod) <= moment.at for pod in pods) and any(
        condition.get("status") == "False" and str(condition.get("lastTransitionTime") or "") >= moment.at
        for condition in conditions
    )


def complete_since(lws: JSONObject) -> str:
    """Return the time since which all groups are ready according to the status, or an empty string."""
    status, available = meta.status(lws), meta.find_condition(lws, AVAILABLE.type) or {}
    if available.get("status") != "True" or status.get("readyReplicas") != status.get("replicas"):
        return ""
    return str(available.get("lastTransitionTime") or "")


def may_be_new(lws: JSONObject, leader: JSONObject) -> bool:
    """Return whether a group index exceeds the desired number of groups.

    Such a surge group is created while the set is available, and may not have been complete. The status may not count
    its leader yet.
    """
    index = None if groupname.has_random_key(leader) else decimals.natural(groupname.group_label(leader))
    return index is not None and index >= int(meta.spec(lws).get("replicas", 1))


def deleted_workers(
    moment: CompletionTime, statefulset: JSONObject, pods: Iterable[JSONObject]
) -> Sequence[JSONObject]:
    """Return the workers that were deleted after a time, or none if the StatefulSet was created later."""
    if meta.creation_timestamp(statefulset) >= moment.at or not _concerns(moment, statefulset):
        return ()
    kept = {meta.name(pod) for pod in pods if meta.creation_timestamp(pod) <= moment.latest}
    ordinals = range(1, (meta.spec(statefulset).get("replicas") or 0) + 1)
    names = [f"{meta.name(statefulset)}-{ordinal}" for ordinal in ordinals]
    return [_last_state(name, statefulset, moment.at) for name in names if name not in kept]


def _concerns(moment: CompletionTime, statefulset: JSONObject) -> bool:
    """Return whether the group of a StatefulSet was complete at a time, based on its leaders."""
    owner = meta.controller_of(statefulset) or {}
    return moment.leaders is None or owner.get("uid") in moment.leaders


def _last_state(name: str, statefulset: JSONObject, deleted_at: str) -> JSONObject:
    """Return the last state of a running worker that was deleted after the group was complete."""
    revision = groupname.revision_key(statefulset)
    return {
        "metadata": {
            "name": name,
            "namespace": meta.namespace(statefulset),
            "labels": {labels.TEMPLATE_REVISION_HASH: revision} if revision else {},
            "deletionTimestamp": deleted_at,
            "ownerReferences": [meta.controller_reference(statefulset)],
        },
        "status": {"phase": "Running", "reason": REASON},
    }
