"""The events of decisions: which object each is about, its reason and its message (contract 8.3).

Every event regards the LeaderWorkerSet; those about a group name its leader pod, those about a revision the revision.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event, OneOfMany
from leaderworkerset.api import groupname
from leaderworkerset.api.groupname import GroupEnd

CREATING_REVISION: Final = "CreatingRevision"
GROUPS_PROGRESSING: Final = "GroupsProgressing"
GROUPS_UPDATING: Final = "GroupsUpdating"
RECREATE_GROUP: Final = "RecreateGroup"
MOVING_GROUP: Final = "MovingGroup"
BACK_OFF: Final = "BackOff"
RESTARTS_EXHAUSTED: Final = "ReplicaRestartBudgetExceeded"
LOST_POD: Final = "LostPod"
REPLACEMENT_DEFERRED: Final = "GroupReplacementDeferred"
REPLACEMENT_ADMITTED: Final = "GroupReplacementAdmitted"
UNEXPECTED_OWNER: Final = "UnexpectedPodGroupOwner"
MAY_BE_EVICTED: Final = "GroupMayBeEvicted"
IGNORED_OBJECT: Final = "IgnoredObject"
FAILED_CREATE: Final = "FailedCreate"
FAILED_UPDATE: Final = "FailedUpdate"


def reference(obj: JSONObject) -> JSONObject:
    """Return a reference to an object, as the `regarding` and `related` of events have it."""
    metadata = meta.metadata(obj)
    fields = {field: metadata[field] for field in ("namespace", "name", "uid", "resourceVersion") if field in metadata}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"]} | fields


def ignored(obj: JSONObject, lws: JSONObject | None, why: str = "cannot be read") -> Event:
    """Return the event of an object that is ignored; it regards its LeaderWorkerSet, or itself if none is known."""
    note = f"{obj['kind']} {meta.name(obj)} {why} and counts as absent: correct or delete it"
    return Event("Warning", IGNORED_OBJECT, "Read", note, reference(lws or obj), reference(obj) if lws else None)


def created(obj: JSONObject, note: str, related: JSONObject | None = None) -> Event:
    """Return the event of an object of a group, or of all groups, that was created."""
    return Event("Normal", GROUPS_PROGRESSING, "Create", note, reference(obj), related and reference(related))


def created_workers(obj: JSONObject, leader: JSONObject) -> Event:
    """Return the event of a worker StatefulSet that was created (R-WSTS-2); those of many groups are told together."""
    event = created(obj, f"Created worker statefulset for leader pod {meta.name(leader)}", leader)
    return _of_group(
        event, "Created worker statefulsets for groups {numbers}", decimals.natural(groupname.label(leader))
    )


def creating_revision(obj: JSONObject, revision: JSONObject, note: str) -> Event:
    """Return the event of a revision that was recorded."""
    return Event("Normal", CREATING_REVISION, "Create", note, reference(obj), reference(revision))


def deleting_surge(obj: JSONObject, note: str) -> Event:
    """Return the event of surplus groups that are deleted (R-ROLL-3)."""
    return Event("Normal", GROUPS_PROGRESSING, "Delete", note, reference(obj))


def updating(obj: JSONObject, note: str) -> Event:
    """Return the event that names the groups that are rolled now (R-LSTS-7)."""
    return Event("Normal", GROUPS_UPDATING, "Update", note, reference(obj))


def replacing_group(obj: JSONObject, leader: str, group: int) -> Event:
    """Return the event of a leader that was deleted to update its group (docs/adr/0004-max-unavailable.md)."""
    note = f"Deleted leader pod {leader} to update group {group}"
    event = Event("Normal", GROUPS_UPDATING, "Delete", note, reference(obj))
    return _of_group(event, "Deleted leader pods to update groups {numbers}", group)


def updating_in_place(obj: JSONObject, leader: str, group: int | None) -> Event:
    """Return the event of a group whose pods get new images and stay (docs/adr/0024-update-in-place.md)."""
    note = f"Updating the group of leader pod {leader} in place"
    event = Event("Normal", GROUPS_UPDATING, "Update", note, reference(obj))
    return _of_group(event, "Updating groups {numbers} in place", group)


def not_in_place(obj: JSONObject, field: str, *, is_held: bool) -> Event:
    """Return the event of a new revision to which groups cannot be brought in place: they are recreated, or held."""
    what = "holds the rollout" if is_held else "groups are recreated"
    note = f"Cannot update groups in place, {what}: {field} differs, and is not the image of a container"
    return Event("Warning" if is_held else "Normal", GROUPS_UPDATING, "Update", note, reference(obj))


def moving_group(obj: JSONObject, leader: str, nodes: Collection[str]) -> Event:
    """Return the event of a group whose leader was deleted as nodes are closed for maintenance (docs/adr/0023)."""
    note = f"Deleted leader pod {leader} to move its group off {', '.join(sorted(nodes))}"
    return Event("Normal", MOVING_GROUP, "Delete", note, reference(obj))


def _of_group(event: Event, note: str, group: int | None) -> Event:
    return event if group is None else replace(event, of_many=OneOfMany(note, group))


def failed_create(obj: JSONObject, note: str, related: JSONObject | None = None) -> Event:
    """Return the event of an object that could not be created."""
    return Event("Warning", FAILED_CREATE, "Create", note, reference(obj), related and reference(related))


def failed_update(obj: JSONObject, note: str) -> Event:
    """Return the event of a leader StatefulSet that could not be changed."""
    return Event("Warning", FAILED_UPDATE, "Update", note, reference(obj))


def condition_changed(obj: JSONObject, reason: str, note: str) -> Event:
    """Return the event of changed conditions (R-STAT-10)."""
    return Event("Normal", reason, "Update", note, reference(obj))


def recreating_group(obj: JSONObject, leader: JSONObject, note: str) -> Event:
    """Return the event of a group that is recreated (R-POD-5)."""
    return Event("Normal", RECREATE_GROUP, "Delete", note, reference(obj), reference(leader))


def backing_off(obj: JSONObject, leader: JSONObject, note: str) -> Event:
    """Return the event of a group that failed again and waits to be recreated."""
    return Event("Warning", BACK_OFF, "Delete", note, reference(obj), reference(leader))


def replacement_deferred(obj: JSONObject, leader: JSONObject, ending: int) -> Event:
    """Return the event of a leader that waits for the end of groups (N-GATE-2)."""
    note = f"Leader pod {meta.name(leader)} waits for {ending} terminating group(s) to be removed before scheduling"
    return Event("Normal", REPLACEMENT_DEFERRED, "Update", note, reference(obj), reference(leader))


def predecessor_awaited(obj: JSONObject, leader: JSONObject) -> Event:
    """Return the event of a leader with an index that waits for the end of the group before it (N-GATE-10)."""
    group = groupname.label(leader)
    note = f"Leader pod {meta.name(leader)} waits for previous group {group} pods to be removed before scheduling"
    return Event("Normal", REPLACEMENT_DEFERRED, "Update", note, reference(obj), reference(leader))


def replacement_admitted(obj: JSONObject, leader: JSONObject) -> Event:
    """Return the event of a leader that may be scheduled (N-GATE-3)."""
    note = f"Leader pod {meta.name(leader)} admitted for scheduling"
    return Event("Normal", REPLACEMENT_ADMITTED, "Update", note, reference(obj), reference(leader))


def scheduling_failed(obj: JSONObject, reason: str, note: str, related: JSONObject | None = None) -> Event:
    """Return the event of `spec.scheduling` that cannot be followed (N-K8S-10)."""
    return Event("Warning", reason, "Reconcile", note, reference(obj), related and reference(related))


def unexpected_owner(leader: JSONObject, pod_group: str) -> Event:
    """Return the event of a PodGroup that another object controls (N-K8S-14)."""
    note = f"PodGroup {pod_group} exists and is not controlled by the LeaderWorkerSet of this pod: delete or rename it"
    return Event("Warning", UNEXPECTED_OWNER, "Create", note, reference(leader))


def restarts_exhausted(obj: JSONObject, leader: JSONObject, note: str) -> Event:
    """Return the event of a group that used up its restarts and is not recreated any more (N-RB-4)."""
    return Event("Warning", RESTARTS_EXHAUSTED, "Delete", note, reference(obj), reference(leader))


def group_ended(obj: JSONObject, leader: JSONObject, end: GroupEnd, note: str) -> Event:
    """Return the event of a group that ended by its own, as sets that run to completion do."""
    return Event(
        "Normal" if end is GroupEnd.COMPLETE else "Warning",
        f"Group{end.value}",
        "Delete",
        note,
        reference(obj),
        reference(leader),
    )


def expired(obj: JSONObject, note: str) -> Event:
    """Return the event of a LeaderWorkerSet that ended and was deleted after its time to live."""
    return Event("Normal", "TTLAfterFinished", "Delete", note, reference(obj))


def releasing_lost_pod(obj: JSONObject, pod: JSONObject, note: str) -> Event:
    """Return the event of a pod on a lost node that was deleted by force."""
    return Event("Warning", LOST_POD, "Delete", note, reference(obj), reference(pod))


def waiting_for_lost_pod(obj: JSONObject, pod: JSONObject, note: str) -> Event:
    """Return the event of a pod on a lost node that blocks its group."""
    return Event("Warning", LOST_POD, "Hold", note, reference(obj), reference(pod))


def may_be_evicted(obj: JSONObject, group: str) -> Event:
    """Return the event of a group whose disruption budget was opened, as one of its nodes is being emptied."""
    note = f"Group {group} may be evicted: a node of it accepts no pods any more"
    return Event("Normal", MAY_BE_EVICTED, "Update", note, reference(obj))
