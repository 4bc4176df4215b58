"""Recreates a whole group after a pod failure, according to the restart policy (R-POD-3 to R-POD-5).

`failures.py` decides which failures count, and `recreation.py` decides when a group may be recreated. Input: a live
group. Output: the deletion of its leader and the record of the recreation, or the time until then. A group without
restarts left is exhausted. Its pods are terminated, kept as evidence, and not replaced (N-RB-4,
`core/restarts/retention.py`).
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import assert_never

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from kuberuntime.plan import Action, Apply, Delete, Event, guarded_delete
from leaderworkerset.api import groupname, labels, recreationrecord
from leaderworkerset.api.recreationrecord import Failure, Origin, Recreation, RecreationState
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies import disruptions, failures, recreation
from leaderworkerset.core.policies.failures import FindFault, RestartExemption
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision
from leaderworkerset.core.policies.recreation import (
    DELETIONS_WITHIN,
    MOST_DELETIONS,
    UPSTREAM_RESTARTS,
    RestartSettings,
)
from leaderworkerset.core.restarts import counts, failure, retention
from leaderworkerset.core.restarts.counts import Key
from leaderworkerset.core.restarts.failure import parenthesize


def decide(
    group: LiveGroup,
    settings: RestartSettings = UPSTREAM_RESTARTS,
    excuses: Sequence[RestartExemption] = (),
    finders: Sequence[FindFault] = (),
) -> PolicyDecision:
    """Delete the leader if a pod failed, delay the deletion, or mark the group as exhausted (R-POD-5).

    If no pod failed, the `finders` search for other reasons. Their order does not matter, because a failure without
    restarts is recorded if there are several.
    """
    if not failures.recreates_groups(group.lws):
        return PolicyDecision()
    limit = group.lws.spec.leader_worker_template.max_group_restarts
    settings = settings if limit is None else replace(settings, max_restarts=limit)
    is_own = group.record is None or not meta.is_of_predecessor(group.record, group.obj)
    previous = recreationrecord.read(group.record if is_own else None)
    if previous is not None and previous.leader == meta.uid(group.leader):
        return _continue_recreation(group, settings, previous)
    cause = _first_failure(group, excuses)
    if cause is None:
        faults = [find(group) for find in finders]
        failed_otherwise = [fault.failure for fault in faults if fault.failure is not None]
        cause = min(failed_otherwise, key=lambda failure: (failure.restarts, failure.description), default=None)
        if cause is None:
            waits = [fault.remaining_time.total_seconds() for fault in faults if fault.remaining_time is not None]
            actions = tuple(action for fault in faults for action in fault.actions)
            return PolicyDecision(actions=actions, requeue_after=min(waits, default=None))
    new = recreation.next_recreation(
        previous, group.leader, cause, settings, group.now, _used_restarts(group, settings)
    )
    return _begin_recreation(group, settings, new)


def _first_failure(group: LiveGroup, excuses: Sequence[RestartExemption]) -> Failure | None:
    """Return the first container or kubelet failure. If there is none, return the first disruption, or None."""
    first = None
    for pod in failures.failed_pods(group.lws, group, excuses):
        cause = replace(failure.describe(pod), origin=disruptions.failure_origin(pod, group.lws, excuses))
        if cause.origin is Origin.PROGRAM:
            return cause
        first = first or cause
    return first


def _begin_recreation(group: LiveGroup, settings: RestartSettings, new: Recreation) -> PolicyDecision:
    """Record and perform a recreation, or perform alternative actions for the failure."""
    recorded: tuple[Action, ...] = (
        (_record(group, new), *_delete_replaced_record(group)) if _must_record(group, settings, new) else ()
    )
    match new.state:
        case RecreationState.EXHAUSTED:
            actions = (counts.require_unchanged(group.obj), *recorded, *_exhaust(group))
        case RecreationState.WAITING:
            actions = recorded
        case RecreationState.RECREATED if new.used_restarts is not None:
            actions = (*recorded, *_count_restart(group, new), _delete(group, new))
        case RecreationState.RECREATED:  # due actions must not wait for a record write that fails
            actions = (_delete(group, new), *recorded)
        case _:
            assert_never(new.state)
    return PolicyDecision(
        delay_reason=_delay_reason(new), actions=actions, requeue_after=_seconds_until(group, settings, new)
    )


def _must_record(group: LiveGroup, settings: RestartSettings, new: Recreation) -> bool:
    """Return whether a recreation is recorded. Disruptions are recorded only if there is an earlier record."""
    is_disruption = new.failure.origin is Origin.DISRUPTION and settings.max_restarts is None and group.record is None
    return settings.records_recreations and not is_disruption


def preserve_pods(group: LiveGroup) -> tuple[Action, ...]:
    """Preserve and terminate the pods of an exhausted group (N-RB-4).

    After the leader recovers, no further pods are preserved.
    """
    leader = group.leader
    if retention.is_recovered(leader):
        return ()
    members = failures.current_pods(group)
    kept = retention.add_finalizer([pod for pod in members if meta.uid(pod) != meta.uid(leader)])
    return kept if meta.is_deleting(leader) else (*kept, _terminate(group))


def _used_restarts(group: LiveGroup, settings: RestartSettings) -> int:
    """Return the number of used restarts of the group. Raise ValueError if the number is invalid (N-RB-10)."""
    return 0 if settings.max_restarts is None else counts.read(group.obj).get(Key.from_leader(group.leader), 0)


def _count_restart(group: LiveGroup, new: Recreation) -> tuple[Action, ...]:
    """Store the number of used restarts, including the current restart, before the recreation (N-RB-3).

    It is stored only once.
    """
    if new.used_restarts is None:
        return ()
    known = counts.read(group.obj)
    if known.get(Key.from_leader(group.leader)) == new.used_restarts:
        return ()
    return (counts.write(group.obj, known | {Key.from_leader(group.leader): new.used_restarts}),)


def _exhaust(group: LiveGroup) -> tuple[Action, ...]:
    """Mark the leader first, so that its workers are recognized as evidence even if later writes fail."""
    return (retention.exhaust(group.leader), *preserve_pods(group))


def _terminate(group: LiveGroup) -> Delete:
    note = f"Restart budget exhausted; terminated group {_index(group)} and stopped automatic recovery"
    return delete_leader(group, decisionevents.restarts_exhausted(group.obj, note, group.leader))


def _delete_replaced_record(group: LiveGroup) -> tuple[Delete, ...]:
    """Delete the record of the replaced group after the new group has a record."""
    record = group.record
    if record is None or meta.name(record) == recreationrecord.record_name(group.leader):
        return ()
    return (guarded_delete(CONTROLLER_REVISIONS, record),)


def _continue_recreation(group: LiveGroup, settings: RestartSettings, known: Recreation) -> PolicyDecision:
    """Perform the recorded recreation of this leader if it is due."""
    if known.resumed != settings.resumed:
        return _perform_recreation(group, known, recreation.immediate_recreation(known, settings, group.now))
    if known.state is RecreationState.WAITING and settings.is_limit_reached(_used_restarts(group, settings)):
        left = replace(known, state=RecreationState.EXHAUSTED)
        return PolicyDecision(
            delay_reason=_delay_reason(left),
            actions=(counts.require_unchanged(group.obj), _record(group, left), *_exhaust(group)),
        )
    if known.state is RecreationState.EXHAUSTED:
        return PolicyDecision(delay_reason=_delay_reason(known), actions=_exhaust(group))
    wait = _seconds_until(group, settings, known)
    if wait is not None:
        return PolicyDecision(delay_reason=_delay_reason(known), requeue_after=wait)
    return _perform_recreation(
        group, known, recreation.start_recreation(known, settings, _used_restarts(group, settings))
    )


def _perform_recreation(group: LiveGroup, known: Recreation, new: Recreation) -> PolicyDecision:
    """Delete the leader after updating the record. The record distinguishes this from deletions by other clients."""
    recorded = () if new == known else (_record(group, new),)
    return PolicyDecision(
        delay_reason=_delay_reason(new), actions=(*recorded, *_count_restart(group, new), _delete(group, new))
    )


def _seconds_until(group: LiveGroup, settings: RestartSettings, due: Recreation) -> float | None:
    """Return the seconds until the recreation is due, or None if it is already due.

    A wait that exceeds the maximum is ignored, because the clock was set back, or was ahead when the record was
    written.
    """
    if due.state is not RecreationState.WAITING or not settings.has_backoff:
        return None
    left = due.due_at - group.now
    return left.total_seconds() if timedelta() < left <= recreation.max_delay(due, settings) else None


def _delay_reason(due: Recreation) -> str:
    return f"the group is being recreated, because pod {due.failure.pod} failed"


def replace_finished(group: LiveGroup) -> Delete:
    """Delete a finished leader with its group, regardless of the restart policy, because a new leader exists."""
    name = meta.name(group.leader)
    phase = meta.status(group.leader)["phase"]
    return recreate(group, f"Leader pod {name} is {phase}, deleted it to terminate group {_index(group)}")


def _delete(group: LiveGroup, due: Recreation) -> Delete:
    name, index = meta.name(group.leader), _index(group)
    return recreate(group, f"Worker pod {due.failure.pod} failed, deleted leader pod {name} to recreate group {index}")


def recreate(group: LiveGroup, note: str) -> Delete:
    """Delete the leader and its group. The note contains the reason."""
    return delete_leader(group, decisionevents.recreating_group(group.obj, note, group.leader))


def delete_leader(group: LiveGroup, event: Event) -> Delete:
    """Delete the leader and its group. The event contains the reason."""
    return Delete(
        resource=PODS,
        key=meta.key(group.leader),
        propagation="Foreground",
        uid=meta.uid(group.leader),
        on_success=(event,),
    )


def _record(group: LiveGroup, new: Recreation) -> Apply:
    """Record the recreation in the record of the group, even if a different manager wrote it."""
    return Apply(
        resource=CONTROLLER_REVISIONS,
        object=recreation.build(group.obj, group.leader, new),
        manager=labels.FIELD_MANAGER,
        on_success=_delay_event(group, new),
    )


def _delay_event(group: LiveGroup, new: Recreation) -> tuple[Event, ...]:
    """Return the event for a delayed recreation. Other recreations are reported when the leader is deleted."""
    if new.state is not RecreationState.WAITING:
        return ()
    when = f"Group {_index(group)} is recreated in {int((new.due_at - group.now).total_seconds())} s"
    if new.failure.origin is Origin.PROGRAM:
        failed = f"Pod {new.failure.pod} failed again{parenthesize(new.failure.description)}"
        note = f"{failed}. {when} (failure {new.count} in a row)"
    else:
        minutes = int(DELETIONS_WITHIN.total_seconds() / 60)
        note = (
            f"Pod {new.failure.pod} was deleted, after {MOST_DELETIONS} other deletions within {minutes} minutes. "
            f"{when}"
        )
    return (decisionevents.backing_off(group.obj, note, group.leader),)


def _index(group: LiveGroup) -> str:
    return groupname.group_label(group.leader)
