"""Defines the events for DisaggregatedSets (R-DS-102).

Each event regards a DisaggregatedSet, and its controller reports the event.
"""

from typing import Final

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event, EventType
from leaderworkerset.core.decisionevents import CONTENTION, reference

REPORTER: Final = "disaggregatedset"


def _build_event(obj: JSONObject, reason: str, action: str, note: str, kind: EventType = "Normal") -> Event:
    return Event(kind, reason, action, note, reference(obj), reporter=REPORTER)


def started_event(obj: JSONObject, revision: str, slice_index: int) -> Event:
    """Return the event for the start of a slice's rollout."""
    return _build_event(
        obj, "RollingUpdateStarted", "Update", f"Rolling slice {slice_index} out to revision {revision}"
    )


def completed_event(obj: JSONObject, revision: str, slice_index: int) -> Event:
    """Return the event for a slice without remaining old groups (unlike Q-6)."""
    return _build_event(
        obj, "RollingUpdateCompleted", "Update", f"Rolled slice {slice_index} out to revision {revision}"
    )


def scaling_event(obj: JSONObject, role: str, name: str, counts: tuple[int, int]) -> Event:
    """Return the event for a rollout step that scales one LeaderWorkerSet."""
    before, after = counts
    word = "Up" if after > before else "Down"
    note = f"Scaling {word.lower()} role {role}: LeaderWorkerSet {name} from {before} to {after}"
    return _build_event(obj, f"Scaling{word}", "Update", note)


def contended_event(obj: JSONObject, name: str) -> Event:
    """Return the event for a LeaderWorkerSet field that a different writer repeatedly reverts."""
    note = f"{{error}}, so LeaderWorkerSet {name} is updated only every 30 s"
    return _build_event(obj, CONTENTION, "Update", note, "Warning")


def deleted_event(obj: JSONObject, name: str, why: str, action: str = "Delete") -> Event:
    """Return the event for the deletion of a LeaderWorkerSet."""
    return _build_event(obj, "LWSDeleted", action, f"Deleted LeaderWorkerSet {name}: {why}")


def scaler_created_event(obj: JSONObject, name: str, role: str) -> Event:
    """Return the event for the creation of a role scaler."""
    return _build_event(obj, "ScalerCreated", "Create", f"Created DisaggregatedSetRoleScaler {name} for role {role}")


def scaler_deleted_event(obj: JSONObject, name: str, role: str) -> Event:
    """Return the event for the deletion of a role scaler."""
    return _build_event(
        obj, "ScalerDeleted", "Delete", f"Deleted DisaggregatedSetRoleScaler {name}: role {role} is not External"
    )


def scaler_conflict_event(obj: JSONObject, name: str, role: str) -> Event:
    """Return the event for a role whose scaler name is in use by a different object."""
    note = (
        f"DisaggregatedSetRoleScaler {name} has a different owner. The groups of role {role} are not scaled until it "
        "is deleted"
    )
    return _build_event(obj, "ScalerConflict", "Conflict", note, "Warning")


def failed_adoption_event(obj: JSONObject, kind: str, name: str) -> Event:
    """Return the event for an orphan that could not be adopted."""
    return _build_event(obj, "FailedAdopt", "Adopt", f"Failed to adopt {kind} {name}: {{error}}", "Warning")


def failed_create_event(obj: JSONObject, kind: str, name: str) -> Event:
    """Return the event for an object that could not be created."""
    return _build_event(obj, "FailedCreate", "Create", f"Failed to create {kind} {name}: {{error}}", "Warning")
