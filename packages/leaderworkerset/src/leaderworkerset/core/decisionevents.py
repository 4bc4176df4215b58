"""Defines the events of reconciliations with their objects, reasons and messages (contract 8.3).

Every event regards the LeaderWorkerSet. Events about a group are related to its leader pod, events about a revision to
the revision.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import AggregatedNote, Event, EventType
from leaderworkerset.api import groupname

GROUPS_PROGRESSING: Final = "GroupsProgressing"
GROUPS_UPDATING: Final = "GroupsUpdating"
MOVING_GROUP: Final = "MovingGroup"
CONTENTION: Final = "FieldContention"


def reference(obj: JSONObject) -> JSONObject:
    """Return an object reference for the `regarding` and `related` fields of events."""
    metadata = meta.metadata(obj)
    fields = {field: metadata[field] for field in ("namespace", "name", "uid", "resourceVersion") if field in metadata}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"]} | fields


class EventKind(Struct, frozen=True):
    """The common type, reason and action of similar events. A call returns an event."""

    type: EventType
    reason: str
    action: str

    def __call__(self, obj: JSONObject, note: str, related: JSONObject | None = None) -> Event:
        """Return an event with this note about a LeaderWorkerSet that is related to a pod or a revision."""
        return Event(self.type, self.reason, self.action, note, reference(obj), related and reference(related))


created: Final = EventKind("Normal", GROUPS_PROGRESSING, "Create")
"""An object for one group or for all groups was created."""

creating_revision: Final = EventKind("Normal", "CreatingRevision", "Create")

deleting_surge: Final = EventKind("Normal", GROUPS_PROGRESSING, "Delete")
"""Surge groups are deleted (R-ROLL-3)."""

updating: Final = EventKind("Normal", GROUPS_UPDATING, "Update")
"""Groups are being rolled out (R-LSTS-7) or updated in place."""

failed_create: Final = EventKind("Warning", "FailedCreate", "Create")

not_headless: Final = EventKind("Warning", "ServiceNotHeadless", "Create")
"""A user's Service is used instead of a managed Service, although it does not resolve pod names."""

failed_update: Final = EventKind("Warning", "FailedUpdate", "Update")

contended: Final = EventKind("Warning", CONTENTION, "Update")
"""A different writer repeatedly reverts the same fields (docs/adr/0030)."""

recreating_group: Final = EventKind("Normal", "RecreateGroup", "Delete")
"""A group is recreated (R-POD-5)."""

backing_off: Final = EventKind("Warning", "BackOff", "Delete")
"""A group failed repeatedly, and its recreation is delayed."""

restarts_exhausted: Final = EventKind("Warning", "ReplicaRestartBudgetExceeded", "Delete")
"""A group exhausted its restarts, and is no longer recreated (N-RB-4)."""

unreadable: Final = EventKind("Warning", "UnreadableField", "Read")
"""A LeaderWorkerSet or group is not reconciled, because a field or annotation is invalid."""

restarted_in_place: Final = EventKind("Normal", "RestartedInPlace", "Restart")
"""A pod restarted all its containers in place (docs/adr/0027)."""

deferring_replacement: Final = EventKind("Normal", "GroupReplacementDeferred", "Update")


def ignored_event(obj: JSONObject, lws: JSONObject | None, why: str = "is invalid") -> Event:
    """Return the event for an ignored object.

    It regards the LeaderWorkerSet, or the object if the LeaderWorkerSet is unknown.
    """
    note = f"Ignored {obj['kind']} {meta.name(obj)}, because it {why}. Correct or delete it"
    return Event("Warning", "IgnoredObject", "Read", note, reference(lws or obj), reference(obj) if lws else None)


def created_workers_event(obj: JSONObject, leader: JSONObject) -> Event:
    """Return the event for a created worker StatefulSet (R-WSTS-2). Events of many groups are combined."""
    event = created(obj, f"Created worker statefulset for leader pod {meta.name(leader)}", leader)
    return group_event(
        event, "Created worker statefulsets for groups {numbers}", decimals.natural(groupname.group_label(leader))
    )


def replacing_group_event(obj: JSONObject, leader: str, group: int) -> Event:
    """Return the event for a leader that was deleted to update its group (docs/adr/0004-max-unavailable.md)."""
    note = f"Deleted leader pod {leader} to update group {group}"
    event = Event("Normal", GROUPS_UPDATING, "Delete", note, reference(obj))
    return group_event(event, "Deleted leader pods to update groups {numbers}", group)


def group_event(event: Event, note: str, group: int | None) -> Event:
    """Return the event for one group, which is combined with other events with the same note."""
    return event if group is None else replace(event, of_many=AggregatedNote(note, group))


def condition_changed_event(obj: JSONObject, reason: str, note: str) -> Event:
    """Return the event for changed conditions (R-STAT-10)."""
    return Event("Normal", reason, "Update", note, reference(obj))


def replacement_deferred_event(obj: JSONObject, leader: JSONObject, ending: int) -> Event:
    """Return the event for a leader that is waiting for other groups to terminate (N-GATE-2)."""
    note = f"Leader pod {meta.name(leader)} waits for {ending} terminating group(s) to be removed before scheduling"
    return deferring_replacement(obj, note, leader)


def waiting_for_predecessor_event(obj: JSONObject, leader: JSONObject) -> Event:
    """Return the event for a leader with an index that is waiting for the previous group to terminate (N-GATE-10)."""
    group = groupname.group_label(leader)
    note = f"Leader pod {meta.name(leader)} waits for previous group {group} pods to be removed before scheduling"
    return deferring_replacement(obj, note, leader)


def replacement_admitted_event(obj: JSONObject, leader: JSONObject) -> Event:
    """Return the event for a leader that is allowed to be scheduled (N-GATE-3)."""
    note = f"Leader pod {meta.name(leader)} admitted for scheduling"
    return Event("Normal", "GroupReplacementAdmitted", "Update", note, reference(obj), reference(leader))


def scheduling_failed_event(obj: JSONObject, reason: str, note: str, related: JSONObject | None = None) -> Event:
    """Return the event for `spec.scheduling` that cannot be applied (N-K8S-10)."""
    return Event("Warning", reason, "Reconcile", note, reference(obj), related and reference(related))


def unexpected_owner_event(leader: JSONObject, pod_group: str) -> Event:
    """Return the event for a PodGroup with a different controller (N-K8S-14)."""
    note = f"PodGroup {pod_group} exists, but the LeaderWorkerSet of this pod does not control it. Delete or rename it"
    return Event("Warning", "UnexpectedPodGroupOwner", "Create", note, reference(leader))
