"""Decides about leaders with random keys: a Deployment keeps them, and replaces them itself (section 5.2, docs/adr/0017).

Once it is as it was applied, leaders that wait for the end of other groups are let go (`gatedleaders.py`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import structs

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import DEPLOYMENTS
from leaderworkerset.core.leaderworkerset import budget, deployments, gatedleaders, leftovers, revisions
from leaderworkerset.core.leaderworkerset.edition import follow
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts
from leaderworkerset.core.leaderworkerset.leaderdecision import LeaderDecision, SetFacts, leaders_of, move
from leaderworkerset.core.leaderworkerset.status import Assessment
from leaderworkerset.core.maintenance import moves


def decide(facts: SetFacts, now: datetime) -> LeaderDecision:
    """Decide about the Deployment and its leaders."""
    obj, lws, key, observed = facts.obj, facts.lws, facts.revision.key, facts.observed
    revision = next((one for one in observed.revisions if revisions.key_of(one) == key), {})
    given = observed.applied.source.replicas if observed.applied else None
    size = deployments.replicas(lws, facts.living, observed.groups, given, meta.created(revision))
    source, applies = follow(obj, key, size, 0, facts.living, observed.applied)
    turn = gatedleaders.Replacement((), observed.gated.surplus)
    if not applies:
        sized = structs.replace(lws, spec=structs.replace(lws.spec, replicas=size))
        turn = gatedleaders.decide(obj, sized, key, observed.groups, observed.gated, observed.records)
    waiting = _waiting(facts) if observed.leaving else {}
    moved = _moved(facts, facts.living, waiting) if waiting and facts.living and not (applies or turn.actions) else ()
    return LeaderDecision(
        resource=DEPLOYMENTS,
        source=source,
        actions=move(facts, moved) if moved else turn.actions,
        moves=bool(moved),
        waiting={leader: observed.leaving[leader] for leader in waiting},
        applied=deployments.build(obj, lws, key=key, size=size) if applies else None,
        at_step=facts.living is not None,
        assessment=_assess(facts, facts.living, now) if facts.living is not None else None,
        surplus=turn.surplus,
        abandoned=_abandoned(facts),
        admitted=turn.admitted,
    )


def _waiting(facts: SetFacts) -> Mapping[str, GroupFacts]:
    """Return the groups that have to leave closed nodes, and are not ending or given up, by their leaders."""
    leaving = facts.observed.leaving
    return {group.leader: group for group in facts.observed.groups if _stays(group) and group.leader in leaving}


def _stays(group: GroupFacts) -> bool:
    return not group.is_deleting and not group.is_exhausted


def _moved(facts: SetFacts, living: JSONObject, waiting: Mapping[str, GroupFacts]) -> Sequence[GroupFacts]:
    """Return the groups to move off closed nodes now; none while the Deployment replaces leaders."""
    groups = facts.observed.groups
    if not deployments.is_current(deployments.Leaders(living, groups, facts.revision.key, has_older=False)):
        return ()
    available = {group.leader for group in groups if _stays(group) and group.is_leader_ready}
    limits = budget.read(facts.lws.spec)
    return [waiting[name] for name in moves.choose(sorted(waiting), available, limits.replicas - limits.unavailable)]


def _assess(facts: SetFacts, deployment: JSONObject, now: datetime) -> Assessment:
    key = facts.revision.key
    has_older = bool(revisions.outdated(revisions.owned(facts.observed.revisions, facts.obj), key))
    leaders = deployments.Leaders(deployment, facts.observed.groups, key, has_older)
    return deployments.assess(facts.lws, leaders, now)


def _abandoned(facts: SetFacts) -> Sequence[JSONObject]:
    records = facts.observed.records
    return leftovers.unfollowed(records, leaders_of(facts.observed)) if records else ()
