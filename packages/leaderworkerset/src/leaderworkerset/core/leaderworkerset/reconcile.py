"""Reconciles a LeaderWorkerSet (contract 2.1).

In: `ObservedLeaderWorkerSet`, all cached objects that the decision uses. Out: a `Plan` in the order of the contract:

1. Record a revision. With `spec.scheduling`, create shared objects of groups; without them, leaders are not changed.
2. Release evidence of groups that used up their restarts (`failedgroups.py`). Apply the keeper of the leaders.
3. Create the shared service. Write the status.
4. If the keeper does not change, replace outdated leaders, or admit waiting leaders (`statefulsetleaders.py`,
   `deploymentleaders.py`), even if step 3 fails. These may be many writes, so the status is written before them.
5. Delete revisions that no group needs.

No action depends on the result of a write in the same plan. The status describes the state before the plan, and the
next reconcile, which observes the writes, updates it. Writes that would not change anything are not sent. So after a
plan was performed and observed, the next plan is empty.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, SERVICES, STATEFULSETS
from kuberuntime.plan import (
    Action,
    Apply,
    Create,
    Emit,
    Event,
    Finally,
    Plan,
    guarded_delete,
    guarded_patch,
)
from leaderworkerset.api import groupname, labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core import decisionevents, reconcilefailure
from leaderworkerset.core.extensions import UPSTREAM, Extensions, Retire
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
    ObservedLeaderWorkerSet,
    OnDemand,
    SetFacts,
)
from leaderworkerset.core.leaderworkerset.failedgroups import FailedGroups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.revisions import Resolution
from leaderworkerset.core.leaderworkerset.rollingupdate import SHRINKING, Rollout, may_create_older
from leaderworkerset.core.policies.gang import NO_GANG, Gang, GangSet, Preparation
from leaderworkerset.core.restarts import counts, retention

RECHECK_DELETION: Final = 5.0
"""The requeue delay in seconds while the leader StatefulSet is terminating (R-LSTS-6)."""

RECHECK_NAMESPACE: Final = 30.0
"""The requeue delay in seconds for rereading the namespace of preserved pods, which is not watched."""

RECHECK_SERVICE: Final = 5.0
"""The requeue delay in seconds for rereading foreign Services with group names, which are not cached."""

RECHECK_RENEWAL: Final = 30.0
"""The retry delay in seconds for setting the current revision, because permissions can be granted later."""

AGAIN: Final = 0.0
"""The requeue delay in seconds after an apply that might not change the object, so that no watch event arrives."""


def reconcile(
    observed: ObservedLeaderWorkerSet, now: datetime, gang: Gang = NO_GANG, extensions: Extensions = UPSTREAM
) -> Plan:
    """Reconcile the LeaderWorkerSet. An invalid field is reported as `Plan.error`."""
    return decide(observed, now, gang, extensions).plan


def decide(
    observed: ObservedLeaderWorkerSet, now: datetime, gang: Gang = NO_GANG, extensions: Extensions = UPSTREAM
) -> Decision:
    """Reconcile, and also return the objects that the plan requires and the results for the next reconciliation."""
    obj = observed.leaderworkerset
    if obj is None or meta.is_deleting(obj):
        return Decision(Plan(retention.release(observed.evidence) if observed.evidence else ()))
    try:
        lws = leaderworkerset.decode(obj)
        is_hash, living = lws.spec.group_identity.is_hash, observed.keeper
        if (instead := _set_aside(observed, obj, lws, living, now)) is not None:
            return Decision(instead)
        history = observed.known.history
        revision = revisions.resolve(obj, living, observed.revisions, observed.known.edition, history)
        facts = SetFacts(observed, obj, lws, revision, gang, living)
        prepared = _prepare(facts, now)
        if prepared.failure is not None:
            report = schedulingcondition.report(obj, lws, prepared.failure, now)
            on_failure = statuswrites.undecided(obj, prepared.failure.message, now)
            plan = Plan((*_record_revision(facts), *report), error=prepared.failure.message, on_failure=on_failure)
            return Decision(plan, frozenset(_history_needed(facts, is_changed=facts.revision.created is not None)))
        expiries = [end(facts, now) for end in extensions.set_ends]
        if ending := next((expiry.actions for expiry in expiries if expiry.actions), None):
            return Decision(Plan(ending))
        leaders = (deploymentleaders if is_hash else statefulsetleaders).decide(facts, now, extensions)
        if leaders.assessment is not None and lws.spec.scheduling is not None:
            new = schedulingcondition.with_preparation(leaders.assessment.status, prepared, lws.generation, now)
            leaders = replace(leaders, assessment=replace(leaders.assessment, status=new))
        for change in extensions.set_steps:
            leaders = change(facts, leaders, now)
        decision = _compose(facts, prepared, leaders, now, extensions)
        waits = [expiry.seconds for expiry in expiries if expiry.seconds is not None]
        return replace(decision, plan=decision.plan.within(min(waits))) if waits else decision
    except ValueError as error:
        return Decision(statuswrites.unreadable(obj, error, now))


def _prepare(facts: SetFacts, now: datetime) -> Preparation:
    """Create the shared objects of groups with `spec.scheduling` before their leaders (N-HASH-1, N-K8S-7)."""
    if facts.lws.spec.scheduling is None:
        return Preparation()
    observed = facts.observed
    sizes = [_pods_of(group, facts) for group in observed.groups.values() if not group.is_deleting]
    return facts.gang.prepare(GangSet(obj=facts.obj, lws=facts.lws, now=now, sizes=sizes, known=observed.scheduling))


def _pods_of(group: GroupFacts, facts: SetFacts) -> int:
    """Return the number of schedulable pods in a group, which is 0 for a gated keyed leader of an older revision."""
    is_closed = facts.lws.spec.group_identity.is_hash and group.awaits and group.revision != facts.revision.key
    return 0 if is_closed else group.own_size or facts.lws.size


def _compose(
    facts: SetFacts, prepared: Preparation, leaders: LeaderDecision, now: datetime, extensions: Extensions
) -> Decision:
    left = failedgroups.sort_out(facts) if facts.observed.evidence else FailedGroups()
    needs = {OnDemand.NAMESPACE} if facts.observed.evidence else set()
    if restart_writes := _count_restarts(facts, leaders, left):
        return Decision(Plan(restart_writes), frozenset(needs))  # the next resourceVersion is reconciled again
    assessment, conflict = leaders.assessment, _service_conflict(facts)
    if conflict and assessment is not None:
        assessment = status.hold(facts.lws, assessment, now)
    needs |= {OnDemand.LEADERS} if leaders.is_void_if_behind and (leaders.applied or leaders.actions) else set()
    actions = [
        *_record_revision(facts),
        *prepared.actions,
        *left.actions,
        *_apply(facts, leaders),
    ]
    needs |= {OnDemand.KEEPER} if leaders.applied and _is_unknown(facts) else set()
    needs |= _history_needed(facts, is_changed=facts.revision.created is not None)
    service = _make_service(facts)
    cleanup: list[Action] = []
    if assessment is not None and assessment.is_update_done:
        outdated = _outdated_revisions(facts, leaders)
        needs |= _history_needed(facts, is_changed=bool(outdated))
        cleanup = _clean_up(facts, outdated, extensions.retire)
    is_news = assessment is not None and assessment.status != facts.lws.status
    report = statuswrites.report(facts, assessment) if assessment is not None and is_news else ()
    actions += _in_order(facts, service, report, leaders.actions, cleanup)
    if leaders.error is not None:
        on_failure = statuswrites.undecided(facts.obj, leaders.error, now)
    else:
        on_failure = statuswrites.fail(facts, assessment, now) if len(actions) > len(report) else ()
    at_step = facts.living is not None and (leaders.rollout is None or leaders.rollout.at_step)
    again = AGAIN if leaders.applied and at_step else RECHECK_NAMESPACE if facts.observed.evidence else None
    actions += _error_events(facts, conflict, leaders.error)
    error = f"LeaderWorkerSet {meta.key(facts.obj)}: {conflict}" if conflict else leaders.error
    plan = Plan(tuple(actions), again, error, on_failure)
    plan = plan.within(RECHECK_SERVICE) if facts.observed.unreachable else plan
    plan = plan.within(RECHECK_RENEWAL) if leaders.actions and leaders.rollout and leaders.rollout.renewal else plan
    return Decision(
        plan,
        frozenset(needs),
        edition=facts.revision.edition,
        source=leaders.source,
        surplus=leaders.turn.surplus,
        applied=_compared(facts, leaders),
    )


def _in_order(
    facts: SetFacts,
    service: Sequence[Action],
    report: Sequence[Action],
    leaders: Sequence[Action],
    cleanup: Sequence[Action],
) -> list[Action]:
    """Return the actions after those for the leader workload. Leaders are handled even if previous actions fail.

    After a failed reconcile, the status is written last, because the failed action may fail again.
    """
    if report and (leaders or cleanup) and reconcilefailure.is_failing(facts.obj):
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


def _history_needed(facts: SetFacts, *, is_changed: bool) -> set[OnDemand]:
    """Return whether the history must be read, because it changes. A new LeaderWorkerSet has no history."""
    is_fresh = facts.living is None and meta.generation(facts.obj) <= 1
    return {OnDemand.HISTORY} if is_changed and facts.observed.known.history is None and not is_fresh else set()


def _compared(facts: SetFacts, leaders: LeaderDecision) -> LastApply | None:
    """Return the source of the leader workload if all its fields were read and match the desired state."""
    if facts.observed.known.whole is None or facts.living is None or leaders.applied is not None:
        return None
    return LastApply(leaders.source, Identity.of(facts.living))


def _is_unknown(facts: SetFacts) -> bool:
    """Return whether the leader workload might differ from the last apply, after a change of the leader manager."""
    return facts.living is not None and facts.observed.known.applied is None and facts.observed.known.whole is None


def _set_aside(
    observed: ObservedLeaderWorkerSet, obj: JSONObject, lws: LeaderWorkerSet, living: JSONObject | None, now: datetime
) -> Plan | None:
    """Return a plan without changes if the leader workload is terminating or has a different owner."""
    if living is not None and _is_going(living, obj):
        return Plan(retention.release(observed.evidence), RECHECK_DELETION)
    if living is None or not groupname.is_foreign(living, obj, groupname.leader_labels(lws.name)):
        return None
    why = f"{living['kind']} {lws.name} {meta.ownership(living)}: delete one of both, or use another name"
    note = f"Failed to create leader {living['kind'].lower()} {lws.name}: {why}"
    event = decisionevents.failed_create(obj, note)
    return Plan(
        (Emit(events=(event,)), *statuswrites.hold(obj, lws, None, now)),
        error=f"LeaderWorkerSet {meta.key(obj)}: {why}",
    )


def _count_restarts(facts: SetFacts, leaders: LeaderDecision, left: FailedGroups) -> tuple[Action, ...]:
    """Store the counts of groups that restart, inherit a count, or are deleted (N-RB-11 to N-RB-14)."""
    known = counts.read(facts.obj) if labels.GROUP_RESTART_COUNTS in facts.lws.annotations else {}
    if not known:
        return ()
    kept = failedgroups.kept_counts(facts, known, leaders.turn.admitted)
    is_done = leaders.assessment is not None and leaders.assessment.is_update_done
    only = {facts.revision.key} if is_done else {key.revision for key in kept}
    new = {key: count for key, count in kept.items() if key not in left.cleared and key.revision in only}
    return () if new == known else (counts.write(facts.obj, new),)


def _is_going(statefulset: JSONObject, obj: JSONObject) -> bool:
    """Return whether a StatefulSet is terminating or belongs to a previous LeaderWorkerSet with the same name.

    The garbage collector deletes such a StatefulSet soon. If it were used, the revision of a deleted spec would be
    reused, and pods that are about to be deleted would be moved (unlike a search by name only, R-LSTS-4).
    """
    return meta.is_deleting(statefulset) or meta.is_of_predecessor(statefulset, obj)


def _record_revision(facts: SetFacts) -> list[Action]:
    revision = facts.revision.created
    if revision is None:
        return _correct_revision(facts.revision)
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


def _correct_revision(resolution: Resolution) -> list[Action]:
    if resolution.corrected is None or resolution.correction is None:
        return []
    return [guarded_patch(CONTROLLER_REVISIONS, resolution.corrected, resolution.correction)]


def _remove_gang(facts: SetFacts) -> Sequence[Action]:
    """Delete gang scheduler objects that no group uses."""
    if not facts.observed.scheduling.objects:
        return ()
    in_use = {facts.revision.key, *(group.revision for group in facts.observed.groups.values())}
    return facts.gang.outdated(facts.observed.scheduling.objects, in_use)


def _revision_note(revision: Resolution) -> str:
    if revision.inherited:
        return f"Creating missing revision with key {revision.key} for existing LeaderWorkerSet"
    what = "updated LWS" if revision.is_new else "a newly created LeaderWorkerSet"
    return f"Creating revision with key {revision.key} for {what}"


def _apply(facts: SetFacts, leaders: LeaderDecision) -> list[Action]:
    """Apply the leader workload (R-LSTS-1), with an event for its creation, or with update events (R-LSTS-7)."""
    if leaders.applied is None:
        return []
    resource = DEPLOYMENTS if leaders.rollout is None else STATEFULSETS
    what = f"leader {resource.kind.lower()} {facts.lws.name}"
    if facts.living is None:
        done: Sequence[Event] = (decisionevents.created(facts.obj, f"Created {what}"),)
        failed = decisionevents.failed_create(facts.obj, f"Failed to create {what}: {{error}}")
    else:
        done, failed = leaders.updating, decisionevents.failed_update(facts.obj, f"Failed to update {what}: {{error}}")
    return [
        *_surge_events(facts, leaders.rollout),
        Apply(
            resource=resource,
            object=leaders.applied,
            manager=labels.FIELD_MANAGER,
            on_success=tuple(done),
            on_failure=(failed,),
            on_contention=(decisionevents.contended(facts.obj, f"{{error}}: {what} is written every 30 s"),),
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


def _make_service(facts: SetFacts) -> list[Action]:
    """Create the shared Service if it is missing (R-SVC-1), or adopt it from a previous LeaderWorkerSet."""
    orphan = facts.observed.service.orphan
    if orphan is not None:
        return [guarded_patch(SERVICES, orphan, revisions.adoption(orphan, facts.obj), if_present=True)]
    is_shared = facts.lws.spec.network_config.subdomain_policy.is_shared
    if facts.observed.service.is_settled or not is_shared:
        return []
    return [services.create(services.build_shared(facts.obj), facts.obj)]


def _service_conflict(facts: SetFacts) -> str:
    """Return the foreign owner of the shared Service, if any. Reconciliation continues without DNS names."""
    is_shared = facts.lws.spec.network_config.subdomain_policy.is_shared
    return facts.observed.service.conflict if is_shared else ""


def _outdated_revisions(facts: SetFacts, leaders: LeaderDecision) -> Sequence[JSONObject]:
    """Return the revisions that are not used by groups, and from which no pods will be created (R-REV-14)."""
    outdated = revisions.outdated(revisions.owned(facts.observed.revisions, facts.obj), facts.revision.key)
    if not outdated or leaders.rollout is None or facts.living is None:
        return outdated
    return () if may_create_older(facts.living, facts.revision.key) else outdated


def _clean_up(facts: SetFacts, outdated: Sequence[JSONObject], retire: Retire | None) -> list[Action]:
    """Delete outdated revisions (R-REV-14), and records and gang scheduler objects of deleted groups."""
    retired: Sequence[Action] = [guarded_delete(CONTROLLER_REVISIONS, revision) for revision in outdated]
    if retire is not None and (outdated or facts.observed.known.history):
        retired = retire(facts, outdated)
    gone = failedgroups.unneeded(facts) if facts.observed.records else ()
    records = (guarded_delete(CONTROLLER_REVISIONS, record) for record in gone)
    return [*retired, *records, *_remove_gang(facts)]
