"""What to do about a LeaderWorkerSet now (contract 2.1).

In: `Observed`, everything the decision uses, as the caches show it. Out: a `Plan` in the order of the contract: record a
revision, move the leader StatefulSet (or, where it stands, replace outdated leaders), make the shared service, write the
status, retire revisions no group needs.

Nothing here waits for the outcome of a write of the same plan: the status counts what was seen before it, and the next
look, which sees the write, counts again. What would change nothing is not sent, so a plan that was performed and seen
is followed by an empty one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS
from kuberuntime.plan import Action, Apply, Create, Delete, Emit, Event, Plan, PutStatus, guarded_delete, guarded_patch
from leaderworkerset.api import labels, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, SubdomainPolicy
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core import events
from leaderworkerset.core.leaderworkerset import (
    exhausted,
    history,
    replacement,
    revisions,
    rollout,
    services,
    settled,
    statefulsets,
    status,
)
from leaderworkerset.core.leaderworkerset.fold import Folded, fold
from leaderworkerset.core.leaderworkerset.groups import Group
from leaderworkerset.core.leaderworkerset.revisions import Resolution
from leaderworkerset.core.leaderworkerset.rollout import Current, Step
from leaderworkerset.core.leaderworkerset.settled import Settled
from leaderworkerset.core.policies.gang import NO_GANG, Gang

RECHECK_DELETION: Final = 5.0
"""Seconds until a LeaderWorkerSet whose leader StatefulSet is being deleted is reconciled again (R-LSTS-6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What is known about a LeaderWorkerSet: itself, and the objects that carry its name.

    `folded` is the fold of `groups` where the caller keeps it up to date, `leaders` the groups by the names of their
    leaders; without them both are made here. `history` is only of use where a plan adds to it (`history.is_growing`),
    `records` are those of recreations. `settled` is what the decision before found in order, if it is known.
    """

    leaderworkerset: JSONObject | None
    leader_statefulset: JSONObject | None = None
    revisions: Sequence[JSONObject] = ()
    has_shared_service: bool = False
    groups: Collection[Group] = ()
    folded: Folded | None = None
    leaders: Mapping[str, Group] | None = None
    gang_objects: Sequence[JSONObject] = ()
    history: Sequence[JSONObject] = ()
    records: Sequence[JSONObject] = ()
    settled: Settled | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, and what the next decision need not compare again: nothing where the plan changes it."""

    plan: Plan
    settled: Settled | None = None


@dataclass(frozen=True, slots=True)
class _Facts:
    """The observed state with the LeaderWorkerSet read, and the revision its groups shall have.

    `is_settled` says that an earlier decision compared the same spec, StatefulSet and revision.
    """

    observed: Observed
    obj: JSONObject
    lws: LeaderWorkerSet
    revision: Resolution
    gang: Gang
    folded: Folded
    is_settled: bool


def reconcile(observed: Observed, now: datetime, gang: Gang = NO_GANG) -> Plan:
    """Decide what to do about the LeaderWorkerSet; a field that cannot be used ends in `Plan.error`."""
    return decide(observed, now, gang).plan


def decide(observed: Observed, now: datetime, gang: Gang = NO_GANG) -> Decision:
    """Decide as `reconcile` does, and return what was found in order beside the plan."""
    obj, statefulset = observed.leaderworkerset, observed.leader_statefulset
    if obj is None or meta.is_deleting(obj):
        return Decision(Plan())
    if statefulset is not None and _is_going(statefulset, obj):
        return Decision(Plan(requeue_after=RECHECK_DELETION))
    seen = settled.describe(obj, statefulset, observed.revisions)
    try:
        facts = _read(observed, obj, gang, is_settled=seen is not None and seen == observed.settled)
        moving = _move_statefulset(facts)
        actions = [*_record_revision(facts), *(moving or _replace_leaders(facts)), *_make_service(facts)]
    except ValueError as error:
        return Decision(Plan(error=f"LeaderWorkerSet {meta.key(obj)}: {error}"))
    is_moving = moving or facts.revision.is_new or facts.revision.created is not None
    return Decision(_report(facts, actions, now), None if is_moving else seen)


def _read(observed: Observed, obj: JSONObject, gang: Gang, *, is_settled: bool) -> _Facts:
    lws = leaderworkerset.decode(obj)
    revision = revisions.resolve(obj, observed.leader_statefulset, observed.revisions, is_settled=is_settled)
    return _Facts(observed, obj, lws, revision, gang, _fold(observed, lws.name), is_settled)


def _is_going(statefulset: JSONObject, obj: JSONObject) -> bool:
    """Return whether it is being deleted, or is of a LeaderWorkerSet of this name that was there before this one.

    The garbage collector deletes that one soon. Whoever goes on with it takes over the revision of a spec that is gone,
    and moves pods that are about to go (unlike looking it up by name only, R-LSTS-4).
    """
    return meta.is_deleting(statefulset) or meta.is_of_predecessor(statefulset, obj)


def _fold(observed: Observed, name: str) -> Folded:
    return fold(observed.groups, name) if observed.folded is None else observed.folded


def _record_revision(facts: _Facts) -> list[Action]:
    revision = facts.revision.created
    if revision is None:
        return _correct_revision(facts.revision)
    note = _revision_note(facts.revision)
    return [
        Create(
            resource=CONTROLLER_REVISIONS,
            object=revision,
            body=revisions.encode(revision),
            on_success=(events.creating_revision(facts.obj, revision, note),),
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
    irregular = {group.revision for group in facts.folded.irregular.values()}
    return {facts.revision.key, *facts.folded.leaders, *irregular}


def _revision_note(revision: Resolution) -> str:
    text = f"Creating revision with key {revision.key} for"
    if revision.inherited:
        return f"Creating missing revision with key {revision.key} for existing LeaderWorkerSet"
    return f"{text} updated LWS" if revision.is_new else f"{text} a newly created LeaderWorkerSet"


def _move_statefulset(facts: _Facts) -> list[Action]:
    """Apply the leader StatefulSet where that would change it (R-LSTS-1), and record an event (R-LSTS-7)."""
    lws, key = facts.lws, facts.revision.key
    limits = rollout.budget(lws.spec)
    living = facts.observed.leader_statefulset
    current = statefulsets.current(living)
    replaced = replacement.abandoned(living, facts.folded, limits=limits, size=lws.size, key=key)
    states = rollout.states(facts.folded, size=lws.size, revision=key, replaced=replaced)
    step = rollout.next_step(limits, current, states, is_new_revision=facts.revision.is_new)
    if living is not None and current is not None and statefulsets.is_behind(living):
        step = rollout.wait(step, current)
    if facts.is_settled and statefulsets.is_at(current, step):
        return []
    desired = statefulsets.build(facts.obj, lws, key=key, limits=limits, step=step)
    if statefulsets.is_applied(living, desired):
        return []
    apply = Apply(
        resource=STATEFULSETS,
        object=desired,
        manager=labels.FIELD_MANAGER,
        on_success=_progress_events(facts, current, step),
        on_failure=(_failure_event(facts),),
    )
    surge_events = _surge_events(facts, current, step)
    return [Emit(events=surge_events), apply] if surge_events else [apply]


def _surge_events(facts: _Facts, current: Current | None, step: Step) -> tuple[Event, ...]:
    if current is None or step.case not in rollout.SHRINKING or step.replicas >= current.replicas:
        return ()
    name, last = facts.lws.name, current.replicas - 1
    note = f"deleting surge replica {name}-{step.replicas}"
    if step.replicas != last:
        note = f"deleting surge replicas from {name}-{step.replicas} to {name}-{last}"
    return (events.deleting_surge(facts.obj, note),)


def _progress_events(facts: _Facts, current: Current | None, step: Step) -> tuple[Event, ...]:
    """Record events of the creation, or of groups that a lower partition releases; a raised one releases none (unlike Q-10)."""
    if current is None:
        return (events.created(facts.obj, f"Created leader statefulset {facts.lws.name}"),)
    if facts.revision.is_new or step.partition >= current.partition:
        return ()
    note = f"Updating replica {step.partition}"
    if current.partition - 1 != step.partition:
        note = f"Updating replicas {step.partition} to {current.partition - 1} (inclusive)"
    return (events.updating(facts.obj, note),)


def _failure_event(facts: _Facts) -> Event:
    note = f"leader statefulset {facts.lws.name}: {{error}}"
    if facts.observed.leader_statefulset is None:
        return events.failed_create(facts.obj, f"Failed to create {note}")
    return events.failed_update(facts.obj, f"Failed to update {note}")


def _replace_leaders(facts: _Facts) -> list[Action]:
    """Delete outdated leaders where the StatefulSet controller would take one at a time (docs/adr/0004)."""
    chosen = replacement.choose(
        facts.observed.leader_statefulset,
        facts.folded,
        limits=rollout.budget(facts.lws.spec),
        size=facts.lws.size,
        key=facts.revision.key,
    )
    if not chosen:
        return []
    leaders = _leaders(facts)
    return [_replace_leader(facts, leaders[f"{facts.lws.name}-{index}"]) for index in chosen]


def _leaders(facts: _Facts) -> Mapping[str, Group]:
    known = facts.observed.leaders
    return {group.leader: group for group in facts.observed.groups} if known is None else known


def _replace_leader(facts: _Facts, group: Group) -> Delete:
    note = f"Deleted leader pod {group.leader} to update group {group.group_index}"
    return Delete(
        resource=PODS,
        key=ObjectKey(facts.lws.namespace, group.leader),
        propagation="Foreground",
        uid=group.uid,
        on_success=(events.replacing_group(facts.obj, note),),
    )


def _make_service(facts: _Facts) -> list[Action]:
    """Create the shared service where it is wanted and missing (R-SVC-1)."""
    is_shared = facts.lws.spec.network_config.subdomain_policy == SubdomainPolicy.SHARED
    if facts.observed.has_shared_service or not is_shared:
        return []
    note = "Failed to create headless service for error: {error}"
    return [
        Create(
            resource=SERVICES,
            object=services.build_shared(facts.obj),
            if_absent=True,
            on_failure=(events.failed_create(facts.obj, note),),
        )
    ]


def _report(facts: _Facts, actions: list[Action], now: datetime) -> Plan:
    """Add the status and what follows from it; a StatefulSet not seen yet leaves the status as it is (R-STAT-2)."""
    statefulset = facts.observed.leader_statefulset
    if statefulset is None:
        return Plan(tuple(actions))
    try:
        counts = status.count(facts.lws, facts.folded, facts.revision.key)
    except status.UnknownIndexError as error:
        return Plan(tuple(actions), error=str(error))
    given_up = exhausted.groups(facts.observed.records, _leaders(facts)) if facts.observed.records else ()
    actions += _write_status(facts, status.build(facts.lws, statefulset, counts, now, given_up), counts)
    if status.is_update_done(facts.lws, counts):
        known = revisions.owned(facts.observed.revisions, facts.obj)
        outdated = revisions.outdated(known, facts.revision.key)
        retired = history.settle(facts.obj, facts.revision.key, outdated, facts.observed.history)
        actions += [*retired, *_delete_abandoned_records(facts), *_remove_gang(facts)]
    return Plan(tuple(actions))


def _delete_abandoned_records(facts: _Facts) -> list[Delete]:
    """Delete the records of recreations of groups that were scaled away: nobody else would."""
    if not facts.observed.records:
        return []
    return [
        guarded_delete(CONTROLLER_REVISIONS, record)
        for record in exhausted.abandoned(facts.observed.records, _leaders(facts), facts.lws.spec.replicas)
    ]


def _write_status(facts: _Facts, new: leaderworkerset.LeaderWorkerSetStatus, counts: status.Counts) -> list[Action]:
    if new == facts.lws.status:
        return []
    outcome = status.choose(facts.lws, counts)[0]
    note = status.event_note(facts.lws, new, outcome)
    changed = new.conditions != facts.lws.status.conditions
    return [
        PutStatus(
            resource=LEADERWORKERSETS,
            object=facts.obj | {"status": leaderworkerset.encode_status(new)},
            resource_version=meta.resource_version(facts.obj),
            if_present=True,
            on_success=(events.condition_changed(facts.obj, outcome.reason, note),) if changed else (),
        )
    ]
