"""Reconciles a LeaderWorkerSet (contract 2.1).

Input: `Outline`, all objects that the decision uses. Output: a `Plan` in the order of the contract:

1. Record a revision. With `spec.scheduling`, create shared objects of groups; without them, leaders are not changed.
2. Release evidence of groups that used up their restarts (`failedgroups.py`). Apply the leader workload.
3. Create the shared service. Write the status.
4. If the leader workload does not change, replace outdated leaders, or admit waiting leaders (`statefulsetleaders.py`,
   `deploymentleaders.py`), even if step 3 fails. These may be many writes, so the status is written before them.
5. Delete revisions that no group needs.

No action depends on the result of a write in the same plan. The status describes the state before the plan, and the
next reconcile, which observes the writes, updates it. Writes that would not change anything are not sent. So after a
plan was performed and observed, the next plan is empty.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, SERVICES, STATEFULSETS
from kuberuntime.plan import (
    Action,
    Apply,
    Create,
    Emit,
    Event,
    Finally,
    Plan,
    PutStatus,
    guarded_delete,
    guarded_patch,
)
from leaderworkerset.api import labels
from leaderworkerset.core import decisionevents, reconcilefailure
from leaderworkerset.core.extensions import Extensions, SetExpiry, SetHook
from leaderworkerset.core.leaderworkerset import (
    deploymentleaders,
    failedgroups,
    revisions,
    schedulingcondition,
    services,
    statefulsetleaders,
    status,
    statuswrites,
)
from leaderworkerset.core.leaderworkerset.cachedapply import Identity, LastApply
from leaderworkerset.core.leaderworkerset.decision import (
    Decision,
    LeaderDecision,
    PreviousResults,
    SetFacts,
)
from leaderworkerset.core.leaderworkerset.failedgroups import FailedGroups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.outline import Outline, outdated_revisions
from leaderworkerset.core.leaderworkerset.revisions import Resolution
from leaderworkerset.core.leaderworkerset.rollingupdate import SHRINKING, Rollout
from leaderworkerset.core.leaderworkerset.status import Assessment
from leaderworkerset.core.policies.gang import GangSet, Preparation
from leaderworkerset.core.restarts import counts

RECHECK_NAMESPACE: Final = 30.0
"""The requeue delay in seconds for rereading the namespace of preserved pods, which is not watched."""

RECHECK_SERVICE: Final = 5.0
"""The requeue delay in seconds for rereading unrelated Services with group names, which are not cached."""

RECHECK_RENEWAL: Final = 30.0
"""The retry delay in seconds for setting the current revision, because permissions can be granted later."""

AGAIN: Final = 0.0
"""The requeue delay in seconds after an apply that might not change the object. No watch event would arrive."""


def reconcile(outlined: Outline, known: PreviousResults, now: datetime, extensions: Extensions) -> Decision:
    """Reconcile a LeaderWorkerSet based on its outline and the additional objects."""
    try:
        return _decide(outlined.complete(known) if outlined.reads else outlined.facts, now, extensions)
    except ValueError as error:
        return Decision(statuswrites.report_unreadable(outlined.facts.obj, error, now))


def _decide(facts: SetFacts, now: datetime, extensions: Extensions) -> Decision:
    obj, lws = facts.obj, facts.lws
    prepared = _prepare(facts, now)
    if prepared.failure is not None:
        report = schedulingcondition.report(obj, lws, prepared.failure, now)
        on_failure = statuswrites.unavailable_status(obj, prepared.failure.message, now)
        return Decision(
            Plan((*_record_revision(facts), *report), error=prepared.failure.message, on_failure=on_failure)
        )
    expiry = extensions.sets.expire(facts, now) if facts.has_signs else SetExpiry()
    if expiry.actions:
        return Decision(Plan(expiry.actions))
    leaders = (deploymentleaders.decide if facts.is_hash else statefulsetleaders.decide)(facts, now, extensions)
    if leaders.assessment is not None and lws.spec.scheduling is not None:
        new = schedulingcondition.with_preparation(leaders.assessment.status, prepared, lws.metadata.generation, now)
        leaders = replace(leaders, assessment=replace(leaders.assessment, status=new))
    if facts.has_signs:
        leaders = extensions.sets.complete(facts, leaders, now)
    conflict = _service_conflict(facts)
    assessment = leaders.assessment
    if conflict and assessment is not None:
        assessment = status.assess_rejected(lws, assessment, now)
    left = failedgroups.find_failed_groups(facts) if facts.observed.evidence else FailedGroups()
    decision = _build_decision(PlanInput(facts, prepared, leaders, left, conflict, assessment, extensions.sets), now)
    return (
        decision if expiry.seconds is None else replace(decision, plan=decision.plan.with_requeue_limit(expiry.seconds))
    )


def _prepare(facts: SetFacts, now: datetime) -> Preparation:
    """Create the shared objects of groups with `spec.scheduling` before their leaders (N-HASH-1, N-K8S-7)."""
    if facts.lws.spec.scheduling is None:
        return Preparation()
    observed = facts.observed
    sizes = [_schedulable_pod_count(group, facts) for group in observed.groups.values() if not group.is_deleting]
    return facts.gang.prepare(GangSet(obj=facts.obj, lws=facts.lws, now=now, sizes=sizes, known=observed.scheduling))


def _schedulable_pod_count(group: GroupFacts, facts: SetFacts) -> int:
    """Return the number of schedulable pods in a group. It is 0 for a gated keyed leader of an older revision."""
    is_closed = facts.is_hash and group.has_replacement_gate and group.revision != facts.revision.key
    return 0 if is_closed else group.original_size or facts.lws.size


class PlanInput(Struct, frozen=True):
    """The input of the plan steps.

    `new_status` contains the new status. `failed_groups` contains the remaining failed groups.
    """

    facts: SetFacts
    preparation: Preparation
    leaders: LeaderDecision
    failed_groups: FailedGroups
    conflict: str
    new_status: Assessment | None
    hook: SetHook


def _build_decision(parts: PlanInput, now: datetime) -> Decision:
    facts, leaders, conflict = parts.facts, parts.leaders, parts.conflict
    if restart_writes := _count_restarts(facts, leaders, parts.failed_groups):
        return Decision(Plan(restart_writes))  # the next resourceVersion is reconciled again
    writes = tuple(action for step in STEPS for action in step(parts))
    error = f"LeaderWorkerSet {meta.key(facts.obj)}: {conflict}" if conflict else leaders.error
    events = _error_events(facts, conflict, leaders.error)
    return Decision(
        Plan((*writes, *events), _requeue_after(facts, leaders), error, _failure_status(parts, writes, now)),
        revision_generation=facts.revision.revision_generation,
        source=leaders.source,
        surplus=leaders.replacement.surplus,
        applied=_matching_apply(facts, leaders),
    )


def _requeue_after(facts: SetFacts, leaders: LeaderDecision) -> float | None:
    """Return the seconds until the next reconciliation without a watch event."""
    rollout = leaders.rollout
    at_step = facts.leader_workload is not None and (rollout is None or rollout.is_at_step)
    reasons = (
        (AGAIN, bool(leaders.applied) and at_step),
        (RECHECK_NAMESPACE, bool(facts.observed.evidence)),
        (RECHECK_SERVICE, bool(facts.observed.unreachable)),
        (RECHECK_RENEWAL, rollout is not None and bool(leaders.actions and rollout.recreate_revision)),
    )
    return min((seconds for seconds, holds in reasons if holds), default=None)


def _failure_status(parts: PlanInput, writes: Sequence[Action], now: datetime) -> tuple[PutStatus, ...]:
    """Return the status write for a failed write."""
    if parts.leaders.error is not None:
        return statuswrites.unavailable_status(parts.facts.obj, parts.leaders.error, now)
    return (
        statuswrites.report_failure(parts.facts, parts.new_status, now)
        if len(writes) > len(_status_write(parts))
        else ()
    )


def _status_write(parts: PlanInput) -> tuple[PutStatus, ...]:
    """Return the status write if the status changed."""
    assessment = parts.new_status
    if assessment is None or assessment.status == parts.facts.lws.status:
        return ()
    return statuswrites.report(parts.facts, assessment)


def _final_actions(parts: PlanInput) -> Sequence[Action]:
    """Return the actions that follow the leader workload. Leaders are handled even if previous actions fail.

    After a failed reconcile, the status is written last, because the failed action may fail again.
    """
    service, report, leaders = _create_service(parts.facts), _status_write(parts), parts.leaders.actions
    is_done = parts.new_status is not None and parts.new_status.is_update_done
    cleanup = _clean_up(parts.facts, parts.hook) if is_done else ()
    if report and (leaders or cleanup) and reconcilefailure.is_failing(parts.facts.obj):
        return [*service, *leaders, *cleanup, *report]
    first = (*service, *report)
    if first and leaders:
        return [Finally(actions=first, after=tuple(leaders)), *cleanup]
    return [*first, *leaders, *cleanup]


def _error_events(facts: SetFacts, conflict: str, uncounted: str | None) -> list[Action]:
    """Return the events for a Service with a different owner, and for groups that cannot be counted."""
    events = []
    if conflict:
        events.append(decisionevents.failed_create(facts.obj, services.NOT_CREATED.format(error=conflict)))
    if uncounted is not None:
        events.append(decisionevents.unreadable(facts.obj, f"Cannot count groups: {uncounted}"))
    return [Emit(events=(event,)) for event in events]


def _matching_apply(facts: SetFacts, leaders: LeaderDecision) -> LastApply | None:
    """Return the source of the leader workload if all its fields were read and match the desired state."""
    if facts.observed.known.complete_workload is None or facts.leader_workload is None or leaders.applied is not None:
        return None
    return LastApply(leaders.source, Identity.from_object(facts.leader_workload))


def _count_restarts(facts: SetFacts, leaders: LeaderDecision, left: FailedGroups) -> tuple[Action, ...]:
    """Store the counts of groups that restart, inherit a count, or are deleted (N-RB-11 to N-RB-14)."""
    known = counts.read(facts.obj) if labels.GROUP_RESTART_COUNTS in facts.lws.metadata.annotations else {}
    if not known:
        return ()
    kept = failedgroups.retained_counts(facts, known, leaders.replacement.admitted)
    is_done = leaders.assessment is not None and leaders.assessment.is_update_done
    only = {facts.revision.key} if is_done else {key.revision for key in kept}
    new = {key: count for key, count in kept.items() if key not in left.reset_keys and key.revision in only}
    return () if new == known else (counts.write(facts.obj, new),)


def _record_revision(facts: SetFacts) -> list[Action]:
    revision, correction = facts.revision.created, facts.revision.correction
    if facts.revision.corrected is not None and correction is not None:
        return [guarded_patch(CONTROLLER_REVISIONS, facts.revision.corrected, correction)]
    if revision is None:
        return []
    note = _revision_note(facts.revision)
    return [
        Create(
            resource=CONTROLLER_REVISIONS,
            object=revision,
            body=facts.revision.body,
            unless_own=True,
            equal=revisions.IDENTITY,
            on_success=(decisionevents.creating_revision(facts.obj, note, revision),),
            on_failure=(
                decisionevents.failed_create(facts.obj, f"Failed to create revision {meta.name(revision)}: {{error}}"),
            ),
        )
    ]


def _remove_gang(facts: SetFacts) -> Sequence[Action]:
    """Delete gang scheduler objects that no group uses."""
    if not facts.observed.scheduling.objects:
        return ()
    in_use = {facts.revision.key, *(group.revision for group in facts.observed.groups.values())}
    return facts.gang.delete_unused(facts.observed.scheduling.objects, in_use)


def _revision_note(revision: Resolution) -> str:
    if revision.is_inherited:
        return f"Creating missing revision with key {revision.key} for existing LeaderWorkerSet"
    what = "updated LWS" if revision.is_new else "a newly created LeaderWorkerSet"
    return f"Creating revision with key {revision.key} for {what}"


def _apply_workload(facts: SetFacts, leaders: LeaderDecision) -> list[Action]:
    """Apply the leader workload (R-LSTS-1), with an event for its creation, or with update events (R-LSTS-7)."""
    if leaders.applied is None:
        return []
    resource = DEPLOYMENTS if leaders.rollout is None else STATEFULSETS
    what = f"leader {resource.kind.lower()} {facts.lws.name}"
    if facts.leader_workload is None:
        done: Sequence[Event] = (decisionevents.created(facts.obj, f"Created {what}"),)
        failed = decisionevents.failed_create(facts.obj, f"Failed to create {what}: {{error}}")
    else:
        done, failed = (
            leaders.update_events,
            decisionevents.failed_update(facts.obj, f"Failed to update {what}: {{error}}"),
        )
    return [
        *_surge_events(facts, leaders.rollout),
        Apply(
            resource=resource,
            object=leaders.applied,
            manager=labels.FIELD_MANAGER,
            on_success=tuple(done),
            on_failure=(failed,),
            on_contention=(decisionevents.contended(facts.obj, f"{{error}}, so {what} is updated only every 30 s"),),
        ),
    ]


def _surge_events(facts: SetFacts, rollout: Rollout | None) -> tuple[Emit, ...]:
    """Return the event for surge groups that the rollout step deletes."""
    if rollout is None:
        return ()
    current, step = rollout.current, rollout.step
    if current is None or step.case not in SHRINKING or step.replicas >= current.replicas:
        return ()
    name, last = facts.lws.name, current.replicas - 1
    note = f"deleting surge replica {name}-{step.replicas}"
    if step.replicas != last:
        note = f"deleting surge replicas from {name}-{step.replicas} to {name}-{last}"
    return (Emit(events=(decisionevents.deleting_surge(facts.obj, note),)),)


def _create_service(facts: SetFacts) -> list[Action]:
    """Create the shared Service if it is missing (R-SVC-1), or adopt it from a previous LeaderWorkerSet."""
    orphan = facts.observed.service.orphan
    if orphan is not None:
        return [guarded_patch(SERVICES, orphan, revisions.adoption_patch(orphan, facts.obj), if_present=True)]
    if facts.observed.service.is_settled or not facts.lws.spec.network_config.subdomain_policy.is_shared:
        return []
    return [services.create(services.build_shared(facts.obj), facts.obj)]


def _service_conflict(facts: SetFacts) -> str:
    """Return the unrelated owner of the shared Service, or an empty string.

    Reconciliation continues without DNS names.
    """
    conflict = facts.observed.service.conflict
    return conflict if conflict and facts.lws.spec.network_config.subdomain_policy.is_shared else ""


def _clean_up(facts: SetFacts, hook: SetHook) -> list[Action]:
    """Delete outdated revisions (R-REV-14), and records and gang scheduler objects of deleted groups."""
    outdated = outdated_revisions(facts) if facts.revision.obsolete else ()
    retired = hook.retire(facts, outdated) if outdated or facts.observed.known.history else ()
    gone = failedgroups.obsolete_records(facts) if facts.observed.records else ()
    records = (guarded_delete(CONTROLLER_REVISIONS, record) for record in gone)
    return [*retired, *records, *_remove_gang(facts)]


STEPS: Final[tuple[Callable[[PlanInput], Sequence[Action]], ...]] = (
    lambda parts: _record_revision(parts.facts),
    lambda parts: parts.preparation.actions,
    lambda parts: parts.failed_groups.actions,
    lambda parts: _apply_workload(parts.facts, parts.leaders),
    _final_actions,
)
"""The ordered writes of a plan."""
