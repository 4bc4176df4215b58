"""Decides about a LeaderWorkerSet (contract 2.1).

In: `ObservedLeaderWorkerSet`, everything the decision uses, as the caches show it. Out: a `Plan` in the order of the
contract:

1. record a revision; with `spec.scheduling`, what its groups share, without which leaders are not changed;
2. apply the leader StatefulSet; if nothing changes in it, replace outdated leaders. Groups with random keys have a leader
   Deployment, which replaces them itself; then leaders that wait for the end of other groups are let go (`gatedleaders.py`);
3. create the shared service;
4. write the status, and delete revisions that no group needs.

No action depends on the result of a write of the same plan: the status counts the state before it, and the next
reconcile, which observes the write, counts again. Writes that are known to change nothing are not sent. So a plan that was
performed and observed is followed by an empty one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, PODS, SERVICES, STATEFULSETS
from kuberuntime.plan import Action, Apply, Create, Delete, Emit, Event, Plan, PutStatus, guarded_delete, guarded_patch
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import (
    deployments,
    exhausted,
    gatedleaders,
    revisionhistory,
    revisions,
    rollingupdate,
    schedulingcondition,
    services,
    statefulsets,
    status,
)
from leaderworkerset.core.leaderworkerset.decision import Decision, ObservedLeaderWorkerSet, OnDemand
from leaderworkerset.core.leaderworkerset.edition import Identity, LastApply, Source
from leaderworkerset.core.leaderworkerset.fold import Folded, fold
from leaderworkerset.core.leaderworkerset.gatedleaders import Replacement
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts
from leaderworkerset.core.leaderworkerset.revisions import Resolution
from leaderworkerset.core.leaderworkerset.rollingupdate import Rollout
from leaderworkerset.core.policies.gang import NO_GANG, Gang, GangSet, Preparation

RECHECK_DELETION: Final = 5.0
"""Seconds until a LeaderWorkerSet whose leader StatefulSet is being deleted is reconciled again (R-LSTS-6)."""


AGAIN: Final = 0.0
"""Seconds until the next reconcile after an apply that may change nothing, since no watch reports one that did not."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """The observed state with the decoded LeaderWorkerSet, the revision its groups shall have, and the rollout to it.

    `living` is what keeps the leaders: a StatefulSet, or a Deployment, which rolls out by itself (`rollout` is None).
    """

    observed: ObservedLeaderWorkerSet
    obj: JSONObject
    lws: LeaderWorkerSet
    revision: Resolution
    gang: Gang
    folded: Folded
    living: JSONObject | None
    rollout: Rollout | None


def reconcile(observed: ObservedLeaderWorkerSet, now: datetime, gang: Gang = NO_GANG) -> Plan:
    """Decide about the LeaderWorkerSet; an unusable field is reported as `Plan.error`."""
    return decide(observed, now, gang).plan


def decide(observed: ObservedLeaderWorkerSet, now: datetime, gang: Gang = NO_GANG) -> Decision:
    """Decide as `reconcile` does, and return also what the plan needs, and what to remember."""
    obj = observed.leaderworkerset
    if obj is None or meta.is_deleting(obj):
        return Decision(Plan())
    try:
        lws = leaderworkerset.decode(obj)
        living = observed.leader_deployment if lws.spec.group_identity.is_hash else observed.leader_statefulset
        if living is not None and _is_going(living, obj):
            return Decision(Plan(requeue_after=RECHECK_DELETION))
        return _decide(_read(observed, obj, lws, living, gang), now)
    except ValueError as error:
        return Decision(Plan(error=f"LeaderWorkerSet {meta.key(obj)}: {error}"))


def _read(
    observed: ObservedLeaderWorkerSet, obj: JSONObject, lws: LeaderWorkerSet, living: JSONObject | None, gang: Gang
) -> _Facts:
    revision = revisions.resolve(obj, living, observed.revisions, observed.edition)
    if lws.spec.group_identity.is_hash:
        return _Facts(observed, obj, lws, revision, gang, Folded(), living, None)
    folded = fold(observed.groups, lws.name) if observed.folded is None else observed.folded
    rollout = rollingupdate.advance(lws, living, folded, revision)
    return _Facts(observed, obj, lws, revision, gang, folded, living, rollout)


def _decide(facts: _Facts, now: datetime) -> Decision:
    rollout = facts.rollout
    prepared = _prepare(facts, now)
    if prepared.failure is not None:
        report = schedulingcondition.report(facts.obj, facts.lws, prepared.failure, now)
        return Decision(Plan((*_record_revision(facts), *report), error=prepared.failure.message))
    source = Source(
        Identity.of(facts.obj),
        facts.revision.key,
        facts.lws.spec.replicas if rollout is None else rollout.step.replicas,
        0 if rollout is None else rollout.step.partition,
    )
    moves = _move_leaders(facts, source)
    let_go = Replacement((), frozenset(facts.observed.gated.surplus)) if moves else _let_go(facts)
    replaced = moves or [*_replace_leaders(facts), *let_go.actions]
    actions = [*_record_revision(facts), *prepared.actions, *replaced, *_make_service(facts)]
    needs = {OnDemand.LEADERS} if moves and rollout is not None and rollout.begins else set()
    error = None
    if facts.living is not None:  # before it is observed the status is unchanged (R-STAT-2)
        try:
            found = _assess(facts, facts.living, now)
        except status.UnknownIndexError as unknown:
            error = str(unknown)
        else:
            new = schedulingcondition.with_preparation(found.status, prepared, facts.lws.generation, now)
            found = replace(found, status=new)
            outdated = _outdated_revisions(facts, facts.living) if found.is_update_done else ()
            needs |= {OnDemand.HISTORY} if outdated and facts.observed.history is None else set()
            actions += [*_write_status(facts, found), *(_clean_up(facts, outdated) if found.is_update_done else ())]
    at_step = facts.living is not None if rollout is None else rollout.at_step
    again = AGAIN if moves and at_step else None
    plan = Plan(tuple(actions), again, error)
    return Decision(plan, frozenset(needs), facts.revision.edition, source, let_go.surplus)


def _assess(facts: _Facts, living: JSONObject, now: datetime) -> status.Assessment:
    key, records = facts.revision.key, facts.observed.records
    given_up = exhausted.groups(records, _leaders(facts)) if records else ()
    if facts.rollout is not None:
        return status.assess(facts.lws, living, facts.folded, key, now, given_up)
    known = revisions.owned(facts.observed.revisions, facts.obj)
    has_older = bool(revisions.outdated(known, key))
    leaders = deployments.Leaders(living, facts.observed.groups, key, has_older)
    return deployments.assess(facts.lws, leaders, now, given_up)


def _prepare(facts: _Facts, now: datetime) -> Preparation:
    """Create what groups with `spec.scheduling` share, before their leaders (N-HASH-1, N-K8S-7)."""
    if facts.lws.spec.scheduling is None:
        return Preparation()
    observed, size = facts.observed, facts.lws.size
    sizes = [group.own_size or size for group in observed.groups if not group.is_deleting]
    whole = GangSet(
        obj=facts.obj,
        lws=facts.lws,
        now=now,
        sizes=sizes,
        objects=observed.gang_objects,
        unused=observed.unused_pod_groups,
        kinds=observed.gang_kinds,
        parent=observed.parent,
    )
    return facts.gang.prepare(whole)


def _let_go(facts: _Facts) -> Replacement:
    """Let leaders with random keys be scheduled as soon as the groups that they replace are gone."""
    if facts.rollout is not None:
        return Replacement((), frozenset())
    observed = facts.observed
    return gatedleaders.decide(
        facts.obj, facts.lws, facts.revision.key, observed.groups, observed.gated, observed.records
    )


def _is_going(statefulset: JSONObject, obj: JSONObject) -> bool:
    """Return whether it is being deleted, or belongs to an earlier LeaderWorkerSet of the same name.

    The garbage collector deletes such a StatefulSet soon. To continue with it would take over the revision of a deleted
    spec, and move pods that are about to be deleted (unlike finding it by name only, R-LSTS-4).
    """
    return meta.is_deleting(statefulset) or meta.is_of_predecessor(statefulset, obj)


def _record_revision(facts: _Facts) -> list[Action]:
    revision = facts.revision.created
    if revision is None:
        return _correct_revision(facts.revision)
    note = _revision_note(facts.revision)
    return [
        Create(
            resource=CONTROLLER_REVISIONS,
            object=revision,
            body=facts.revision.body,
            on_success=(decisionevents.creating_revision(facts.obj, revision, note),),
        )
    ]


def _correct_revision(found: Resolution) -> list[Action]:
    if found.corrected is None or found.correction is None:
        return []
    return [guarded_patch(CONTROLLER_REVISIONS, found.corrected, found.correction)]


def _remove_gang(facts: _Facts) -> Sequence[Action]:
    """Delete the gang scheduler's objects that no group uses any more."""
    if not facts.observed.gang_objects:
        return ()
    return facts.gang.outdated(facts.observed.gang_objects, _revisions_in_use(facts))


def _revisions_in_use(facts: _Facts) -> set[str]:
    return {facts.revision.key, *(group.revision for group in facts.observed.groups)}


def _revision_note(revision: Resolution) -> str:
    text = f"Creating revision with key {revision.key} for"
    if revision.inherited:
        return f"Creating missing revision with key {revision.key} for existing LeaderWorkerSet"
    return f"{text} updated LWS" if revision.is_new else f"{text} a newly created LeaderWorkerSet"


def _move_leaders(facts: _Facts, source: Source) -> list[Action]:
    """Apply what keeps the leaders unless it is as applied from this source (R-LSTS-1); record an event (R-LSTS-7)."""
    living, rollout, key = facts.living, facts.rollout, facts.revision.key
    if living is not None and facts.observed.applied == LastApply(source, Identity.of(living)):
        return []
    apply = Apply(
        resource=DEPLOYMENTS if rollout is None else STATEFULSETS,
        object=deployments.build(facts.obj, facts.lws, key=key)
        if rollout is None
        else statefulsets.build(facts.obj, facts.lws, key=key, limits=rollout.limits, step=rollout.step),
        manager=labels.FIELD_MANAGER,
        on_success=_progress_events(facts),
        on_failure=(_failure_event(facts),),
    )
    surge_events = _surge_events(facts)
    return [Emit(events=surge_events), apply] if surge_events else [apply]


def _surge_events(facts: _Facts) -> tuple[Event, ...]:
    if facts.rollout is None:
        return ()
    current, step = facts.rollout.current, facts.rollout.step
    if current is None or step.case not in rollingupdate.SHRINKING or step.replicas >= current.replicas:
        return ()
    name, last = facts.lws.name, current.replicas - 1
    note = f"deleting surge replica {name}-{step.replicas}"
    if step.replicas != last:
        note = f"deleting surge replicas from {name}-{step.replicas} to {name}-{last}"
    return (decisionevents.deleting_surge(facts.obj, note),)


def _progress_events(facts: _Facts) -> tuple[Event, ...]:
    """Record events of the creation, or of groups that a lower partition releases; a raised one releases none (unlike Q-10)."""
    if facts.living is None:
        return (decisionevents.created(facts.obj, f"Created {_leader_object(facts)}"),)
    if facts.rollout is None or facts.rollout.current is None:
        return ()
    current, step = facts.rollout.current, facts.rollout.step
    if facts.revision.is_new or step.partition >= current.partition:
        return ()
    note = f"Updating replica {step.partition}"
    if current.partition - 1 != step.partition:
        note = f"Updating replicas {step.partition} to {current.partition - 1} (inclusive)"
    return (decisionevents.updating(facts.obj, note),)


def _failure_event(facts: _Facts) -> Event:
    note = f"{_leader_object(facts)}: {{error}}"
    if facts.living is None:
        return decisionevents.failed_create(facts.obj, f"Failed to create {note}")
    return decisionevents.failed_update(facts.obj, f"Failed to update {note}")


def _leader_object(facts: _Facts) -> str:
    return f"leader {'deployment' if facts.rollout is None else 'statefulset'} {facts.lws.name}"


def _replace_leaders(facts: _Facts) -> list[Action]:
    """Delete outdated leaders where the StatefulSet controller would replace one at a time (docs/adr/0004)."""
    replaced = () if facts.rollout is None else facts.rollout.replaced
    leaders = _leaders(facts) if replaced else {}
    return [_replace_leader(facts, leaders[f"{facts.lws.name}-{index}"], index) for index in replaced]


def _leaders(facts: _Facts) -> Mapping[str, GroupFacts]:
    known = facts.observed.leaders
    return {group.leader: group for group in facts.observed.groups} if known is None else known


def _replace_leader(facts: _Facts, group: GroupFacts, index: int) -> Delete:
    return Delete(
        resource=PODS,
        key=ObjectKey(facts.lws.namespace, group.leader),
        propagation="Foreground",
        uid=group.uid,
        on_success=(decisionevents.replacing_group(facts.obj, group.leader, index),),
    )


def _make_service(facts: _Facts) -> list[Action]:
    """Create the shared service if it is configured and missing (R-SVC-1)."""
    is_shared = facts.lws.spec.network_config.subdomain_policy.is_shared
    if facts.observed.has_shared_service or not is_shared:
        return []
    note = "Failed to create headless service for error: {error}"
    return [
        Create(
            resource=SERVICES,
            object=services.build_shared(facts.obj),
            if_absent=True,
            on_failure=(decisionevents.failed_create(facts.obj, note),),
        )
    ]


def _outdated_revisions(facts: _Facts, living: JSONObject) -> Sequence[JSONObject]:
    """Return the revisions that no group uses any more, and that no pod will be created from (R-REV-14)."""
    key = facts.revision.key
    if facts.rollout is not None and rollingupdate.may_create_older(living, key):
        return ()
    return revisions.outdated(revisions.owned(facts.observed.revisions, facts.obj), key)


def _clean_up(facts: _Facts, outdated: Sequence[JSONObject]) -> list[Action]:
    """Move outdated revisions to the history; delete records and gang objects of groups that are gone."""
    retired = revisionhistory.settle(facts.obj, facts.revision.key, outdated, facts.observed.history or ())
    return [*retired, *_delete_abandoned_records(facts), *_remove_gang(facts)]


def _delete_abandoned_records(facts: _Facts) -> list[Delete]:
    """Delete the records of recreations of groups that were scaled down: no other action would."""
    if not facts.observed.records:
        return []
    found, leaders = facts.observed.records, _leaders(facts)
    abandoned = (
        exhausted.unfollowed(found, leaders)
        if facts.rollout is None
        else exhausted.abandoned(found, leaders, facts.lws.spec.replicas)
    )
    return [guarded_delete(CONTROLLER_REVISIONS, record) for record in abandoned]


def _write_status(facts: _Facts, found: status.Assessment) -> list[Action]:
    if found.status == facts.lws.status:
        return []
    changed = found.status.conditions != facts.lws.status.conditions
    return [
        PutStatus(
            resource=LEADERWORKERSETS,
            object=facts.obj | {"status": leaderworkerset.encode_status(found.status)},
            resource_version=meta.resource_version(facts.obj),
            if_present=True,
            on_success=(decisionevents.condition_changed(facts.obj, found.outcome.reason, found.note),)
            if changed
            else (),
        )
    ]
