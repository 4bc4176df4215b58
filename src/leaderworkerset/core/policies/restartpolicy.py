"""Restart policy: a pod that fails ends its whole group, which is recreated (R-POD-3 to R-POD-5).

`failures.py` decides which failures count, `recreation.py` when a group may be recreated. In: a live group. Out: the
deletion of its leader and the record of the recreation, or how long to wait for it, or that the group is left failed.
"""

from dataclasses import replace
from datetime import timedelta

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from kuberuntime.plan import Action, Apply, Delete, Event, guarded_delete
from leaderworkerset.api import groupname, labels
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies import failures, recreation
from leaderworkerset.core.policies.failures import Members
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision
from leaderworkerset.core.policies.recreation import Recreation, RecreationState
from leaderworkerset.core.restarts import failure
from leaderworkerset.core.restarts.failure import in_brackets


def decide(group: LiveGroup) -> PolicyDecision:
    """Delete the leader if a pod of the group failed, or wait until that is due (R-POD-5)."""
    if not failures.is_active(group.lws):
        return PolicyDecision()
    is_own = group.record is None or not meta.is_of_predecessor(group.record, group.obj)
    previous = recreation.read(group.record if is_own else None)
    if previous is not None and previous.leader == meta.uid(group.leader):
        return _continue(group, previous)
    failed = failures.failed_pod(group.lws, Members(group.leader, group.pods, group.gone, group.statefulsets))
    if failed is None:
        return PolicyDecision()
    new = recreation.following(previous, group.leader, failure.describe(failed), group.restarts, group.now)
    if not group.restarts.remembers:
        return PolicyDecision(holds=_holds(new), actions=(_delete(group, new),))
    recorded: tuple[Action, ...] = (_record(group, new), *_drop_replaced(group))
    if new.state is RecreationState.RECREATED:  # first what is due: a record that cannot be written must not delay it
        return PolicyDecision(holds=_holds(new), actions=(_delete(group, new), *recorded))
    return PolicyDecision(holds=_holds(new), actions=recorded, requeue_after=_wait(group, new))


def _drop_replaced(group: LiveGroup) -> tuple[Delete, ...]:
    """Delete the record of the group that this one replaced: its own record continues it."""
    record = group.record
    if record is None or meta.name(record) == recreation.record_name(group.leader):
        return ()
    return (guarded_delete(CONTROLLER_REVISIONS, record),)


def _continue(group: LiveGroup, known: Recreation) -> PolicyDecision:
    """Carry out what is recorded for this leader, once it is due."""
    if known.resumed != group.restarts.resumed:
        return _carry_out(group, known, known.again(group.restarts, group.now))
    if known.state is not RecreationState.RECREATED and group.restarts.exceeds(known.count):
        left = replace(known, state=RecreationState.EXHAUSTED)
        return PolicyDecision(holds=_holds(left), actions=() if left == known else (_record(group, left),))
    wait = _wait(group, known)
    if wait is not None:
        return PolicyDecision(holds=_holds(known), requeue_after=wait)
    return _carry_out(group, known, replace(known, state=RecreationState.RECREATED))


def _carry_out(group: LiveGroup, known: Recreation, new: Recreation) -> PolicyDecision:
    """Delete the leader; the record says so before, so that it is not taken for a deletion by another client."""
    delete = _delete(group, new)
    return PolicyDecision(holds=_holds(new), actions=(delete,) if new == known else (_record(group, new), delete))


def _wait(group: LiveGroup, due: Recreation) -> float | None:
    """Return how many seconds the recreation still waits, None if it does not.

    A wait longer than its own delay is ignored: the clock was set back, or was ahead when the record was written.
    """
    if due.state is not RecreationState.WAITING or not group.restarts.backs_off:
        return None
    left = due.due - group.now
    return left.total_seconds() if timedelta() < left <= group.restarts.delay(due.count) else None


def _holds(due: Recreation) -> str:
    return f"group is recreated: pod {due.failure.pod} failed"


def replace_ended(group: LiveGroup) -> Delete:
    """Delete a leader that has ended, with its group: another one is there already, whatever the restart policy."""
    name = meta.name(group.leader)
    phase = meta.status(group.leader)["phase"]
    return _delete_leader(group, f"Leader pod {name} is {phase}, deleted it to end group {_index(group)}")


def _delete(group: LiveGroup, due: Recreation) -> Delete:
    name, index = meta.name(group.leader), _index(group)
    note = f"Worker pod {due.failure.pod} failed, deleted leader pod {name} to recreate group {index}"
    return _delete_leader(group, note)


def _delete_leader(group: LiveGroup, note: str) -> Delete:
    return Delete(
        resource=PODS,
        key=meta.key(group.leader),
        propagation="Foreground",
        uid=meta.uid(group.leader),
        on_success=(decisionevents.recreating_group(group.obj, group.leader, note),),
    )


def _record(group: LiveGroup, new: Recreation) -> Apply:
    """Record the recreation: one record for each group, whichever manager wrote the last one."""
    return Apply(
        resource=CONTROLLER_REVISIONS,
        object=recreation.build(group.obj, group.leader, new),
        manager=labels.FIELD_MANAGER,
        on_success=_news(group, new),
    )


def _news(group: LiveGroup, new: Recreation) -> tuple[Event, ...]:
    """Return the event of a recreation that does not happen now; others are reported with their deletion."""
    failed = f"Pod {new.failure.pod} failed again{in_brackets(new.failure.what)}"
    if new.state is RecreationState.WAITING:
        wait = int((new.due - group.now).total_seconds())
        note = f"{failed}, group {_index(group)} is recreated in {wait} s (number {new.count} in a row)"
        return (decisionevents.backing_off(group.obj, group.leader, note),)
    if new.state is RecreationState.EXHAUSTED:
        note = (
            f"{failed}, group {_index(group)} is left as it is after recreation number {new.count - 1} in a row:"
            f" raise or remove annotation {labels.MAX_GROUP_RESTARTS},"
            f" or change annotation {labels.RESUME_GROUP_RESTARTS}"
        )
        return (decisionevents.restarts_exhausted(group.obj, group.leader, note),)
    return ()


def _index(group: LiveGroup) -> str:
    return groupname.label(group.leader)
