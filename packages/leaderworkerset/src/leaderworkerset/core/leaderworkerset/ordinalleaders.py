"""Decides about leaders with ordinals: a StatefulSet keeps them, and a rollout leads it step by step (`rollingupdate.py`).

Once it is as it was applied, outdated leaders are deleted where the StatefulSet controller would replace one at a time
(docs/adr/0004).
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STATEFULSETS
from kuberuntime.plan import Action, Emit, Event, together
from leaderworkerset.api import groupname, labels
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import inplace, leftovers, revisions, rollingupdate, statefulsets, status
from leaderworkerset.core.leaderworkerset.decision import LeaderDecision, SetFacts, delete_leader, leaders_of, move
from leaderworkerset.core.leaderworkerset.edition import follow, is_as_applied
from leaderworkerset.core.leaderworkerset.fold import Folded, below, fold, highest, regular
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts
from leaderworkerset.core.leaderworkerset.rollingupdate import Rollout
from leaderworkerset.core.maintenance import moves


def decide(facts: SetFacts, now: datetime) -> LeaderDecision:
    """Decide about the StatefulSet and its leaders."""
    observed, lws, living, key = facts.observed, facts.lws, facts.living, facts.revision.key
    folded = fold(observed.groups, lws.name) if observed.folded is None else observed.folded
    route = inplace.RECREATE
    if labels.IN_PLACE in lws.annotations or folded.updating:
        route, folded = inplace.find_route(facts.obj, observed.revisions, key, folded, facts.gang)
    waiting = _waiting(facts, folded) if observed.leaving else 0
    rollout = rollingupdate.advance(lws, living, folded, facts.revision, route, waiting)
    step = rollout.step
    source, applies = follow(facts.obj, key, step.replicas, step.partition, living, observed.applied)
    wanted = None
    if applies:
        wanted = statefulsets.build(facts.obj, lws, key=key, limits=rollout.limits, step=step, living=living)
        applies = not (living and observed.whole and is_as_applied(wanted, living, observed.whole))
    assessment, error = None, None
    if living is not None:
        try:
            assessment = status.assess(lws, living, folded, key, now)
        except status.UnknownIndexError as unknown:
            error = str(unknown)
    moved = () if applies or living is None or not waiting else _moved(facts, rollout, folded, waiting)
    is_done = assessment is not None and assessment.is_update_done
    return LeaderDecision(
        resource=STATEFULSETS,
        source=source,
        announced=_surge_events(facts, rollout) if applies else (),
        actions=() if applies else _act(facts, rollout, folded, moved),
        moves=bool(moved),
        waiting={name: observed.leaving[name] for name in _names(lws.name, waiting)} if waiting else {},
        applied=wanted if applies else None,
        updating=_update_events(facts, rollout, folded),
        begins=rollout.begins,
        at_step=rollout.at_step,
        assessment=assessment,
        error=error,
        may_create_older=is_done and living is not None and rollingupdate.may_create_older(living, key),
        abandoned=_abandoned(facts),
    )


def _act(facts: SetFacts, rollout: Rollout, folded: Folded, moved: Sequence[GroupFacts]) -> tuple[Action, ...]:
    if moved:
        return move(facts, moved)
    return (*_replace(facts, rollout.replaced), *_mark(facts, folded, rollout.released))


def _waiting(facts: SetFacts, folded: Folded) -> int:
    """Return the wanted groups that have to leave closed nodes, and are not ending or given up."""
    leaving = facts.observed.leaving
    known, name = leaders_of(facts.observed), facts.lws.name
    found = regular([known[leader] for leader in leaving if leader in known], name, folded)
    return below(found & ~folded.deleting & ~folded.exhausted, facts.lws.spec.replicas)


def _names(name: str, groups: int) -> Iterator[str]:
    return (f"{name}-{index}" for index in highest(groups))


def _moved(facts: SetFacts, rollout: Rollout, folded: Folded, waiting: int) -> Sequence[GroupFacts]:
    """Return the groups to move now; none while anything else may delete leaders: their number would not be known."""
    statefulset, limits = facts.living, rollout.limits
    if statefulset is None or not rollout.at_step or rollout.replaced or folded.updating or rollout.released:
        return ()
    if rollingupdate.is_rolling(statefulset, folded):
        return ()
    available = rollingupdate.living(statefulset, folded) & folded.available(facts.lws.size)
    chosen = moves.choose(highest(waiting), frozenset(highest(available)), limits.replicas - limits.unavailable)
    known = leaders_of(facts.observed)
    return [known[f"{facts.lws.name}-{index}"] for index in chosen]


def _surge_events(facts: SetFacts, rollout: Rollout) -> tuple[Emit, ...]:
    current, step = rollout.current, rollout.step
    if current is None or step.case not in rollingupdate.SHRINKING or step.replicas >= current.replicas:
        return ()
    name, last = facts.lws.name, current.replicas - 1
    note = f"deleting surge replica {name}-{step.replicas}"
    if step.replicas != last:
        note = f"deleting surge replicas from {name}-{step.replicas} to {name}-{last}"
    return (Emit(events=(decisionevents.deleting_surge(facts.obj, note),)),)


def _update_events(facts: SetFacts, rollout: Rollout, folded: Folded) -> tuple[Event, ...]:
    """Record events of groups that a lower partition releases; a raised one releases none (unlike Q-10).

    Nor does one that only follows groups that were updated in place.
    """
    current, step, is_in_place = rollout.current, rollout.step, labels.IN_PLACE in facts.lws.annotations
    if facts.revision.is_new:
        return _announce(facts) if is_in_place else ()
    if current is None or step.partition >= current.partition:
        return ()
    span = below(folded.members, current.partition) & ~below(folded.members, step.partition)
    if is_in_place and span and not span & ~folded.leaders.get(facts.revision.key, 0):
        return ()
    note = f"Updating replica {step.partition}"
    if current.partition - 1 != step.partition:
        note = f"Updating replicas {step.partition} to {current.partition - 1} (inclusive)"
    return (decisionevents.updating(facts.obj, note),)


def _announce(facts: SetFacts) -> tuple[Event, ...]:
    """Record the event of groups that cannot be updated in place to a new revision."""
    known, key = facts.observed.revisions, groupname.revision(facts.living or {})
    new = facts.revision.created or revisions.find(known, facts.revision.key)
    return inplace.announce(facts.obj, known, key, new, facts.gang)


def _replace(facts: SetFacts, replaced: Sequence[int]) -> tuple[Action, ...]:
    if not replaced:
        return ()
    leaders = leaders_of(facts.observed)
    groups = ((index, leaders[f"{facts.lws.name}-{index}"]) for index in replaced)
    return together(
        delete_leader(facts, group, decisionevents.replacing_group(facts.obj, group.leader, index))
        for index, group in groups
    )


def _mark(facts: SetFacts, folded: Folded, released: int) -> tuple[Action, ...]:
    """Mark the groups that are updated in place now."""
    living, key = facts.living, facts.revision.key
    if living is None or not released | folded.updating:
        return ()
    if groupname.revision(living) != key or not rollingupdate.has_looked(living):
        return ()
    found = inplace.marks(folded, leaders_of(facts.observed), facts.lws.name, key, released)
    return together(inplace.mark(facts.obj, group, key, living) for group in found)


def _abandoned(facts: SetFacts) -> Sequence[JSONObject]:
    observed = facts.observed
    if not observed.records:
        return ()
    return leftovers.abandoned(observed.records, leaders_of(observed), facts.lws.spec.replicas)
