"""Writes the status of a LeaderWorkerSet, including errors for rejected or invalid objects.

A set whose reconcile fails is not Available, regardless of its counts (docs/adr/0030).
"""

from datetime import datetime

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Emit, Event, Plan, PutStatus
from leaderworkerset.api import leaderworkerset
from leaderworkerset.api.conditions import AVAILABLE
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, LeaderWorkerSetStatus
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core import decisionevents, reconcilefailure
from leaderworkerset.core.leaderworkerset import invalidfields, status
from leaderworkerset.core.leaderworkerset.decision import SetFacts
from leaderworkerset.core.leaderworkerset.status import Assessment


def report(facts: SetFacts, assessment: Assessment) -> tuple[PutStatus, ...]:
    """Return the status write if the status changed, with an event if a condition changed (R-STAT-3)."""
    changed = assessment.status.conditions != facts.lws.status.conditions
    event = decisionevents.condition_changed_event(facts.obj, assessment.reason, assessment.note)
    return (_write_status(facts.obj, assessment.status, (event,) if changed else ()),)


def report_rejected(
    obj: JSONObject, lws: LeaderWorkerSet, assessment: Assessment | None, now: datetime
) -> tuple[PutStatus, ...]:
    """Return the status write for a rejected object, because the plan stops at that action."""
    new = status.assess_rejected(lws, assessment, now).status
    return () if new == lws.status else (_write_status(obj, new),)


def report_failure(facts: SetFacts, assessment: Assessment | None, now: datetime) -> tuple[PutStatus, ...]:
    """Return the status write for a failed action, after which the LeaderWorkerSet is not Available."""
    if assessment is None or assessment.outcome is not AVAILABLE:
        return report_rejected(facts.obj, facts.lws, assessment, now)
    counts = leaderworkerset.encode_status(assessment.status)
    return reconcilefailure.failed_action_status(LEADERWORKERSETS, facts.obj, counts, now)


def unavailable_status(obj: JSONObject, why: str, now: datetime) -> tuple[PutStatus, ...]:
    """Return the status write for a LeaderWorkerSet that is no longer Available. Its groups cannot be reconciled."""
    if not meta.is_condition_true(obj, AVAILABLE.type) and not reconcilefailure.is_failing(obj):
        return ()
    return reconcilefailure.report(LEADERWORKERSETS, obj, why, now)


def report_unreadable(obj: JSONObject, error: ValueError, now: datetime) -> Plan:
    """Return the plan for an invalid object, with an event and a status that is not Available."""
    why = invalidfields.unreadable_reason(obj) or str(error)
    event = decisionevents.unreadable(obj, f"Cannot reconcile: {why}")
    failure = reconcilefailure.report(LEADERWORKERSETS, obj, reconcilefailure.NOT_READ.format(error=why), now)
    return Plan((Emit(events=(event,)), *failure), error=f"LeaderWorkerSet {meta.key(obj)}: {error}")


def _write_status(obj: JSONObject, new: LeaderWorkerSetStatus, on_success: tuple[Event, ...] = ()) -> PutStatus:
    return PutStatus(
        resource=LEADERWORKERSETS,
        object=obj | {"status": leaderworkerset.encode_status(new)},
        resource_version=meta.resource_version(obj),
        if_present=True,
        on_success=on_success,
    )
