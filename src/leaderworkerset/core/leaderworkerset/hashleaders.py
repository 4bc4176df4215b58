"""Decides about leaders with random keys: a Deployment keeps them, and replaces them itself (section 5.2, docs/adr/0017).

Once it is as it was applied, leaders that wait for the end of other groups are let go (`gatedleaders.py`).
"""

from collections.abc import Sequence
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
    moved = _moved(facts, facts.living) if observed.leaving and facts.living and not (applies or turn.actions) else ()
    return LeaderDecision(
        resource=DEPLOYMENTS,
        source=source,
        actions=move(facts, moved) if moved else turn.actions,
        moves=bool(moved),
        applied=deployments.build(obj, lws, key=key, size=size) if applies else None,
        at_step=facts.living is not None,
        assessment=_assess(facts, facts.living, now) if facts.living is not None else None,
        surplus=turn.surplus,
        abandoned=_abandoned(facts),
        admitted=turn.admitted,
    )


def _moved(facts: SetFacts, living: JSONObject) -> Sequence[GroupFacts]:
    """Return the groups to move off closed nodes now; none while the Deployment replaces leaders."""
    observed = facts.observed
    leaders = deployments.Leaders(living, observed.groups, facts.revision.key, has_older=False)
    if not deployments.is_current(leaders):
        return ()
    staying = {group.leader: group for group in observed.groups if not group.is_deleting and not group.is_exhausted}
    available = {name for name, group in staying.items() if group.is_leader_ready}
    limits = budget.read(facts.lws.spec)
    chosen = moves.choose(sorted(staying.keys() & observed.leaving), available, limits.replicas - limits.unavailable)
    return [staying[name] for name in chosen]


def _assess(facts: SetFacts, deployment: JSONObject, now: datetime) -> Assessment:
    key = facts.revision.key
    has_older = bool(revisions.outdated(revisions.owned(facts.observed.revisions, facts.obj), key))
    leaders = deployments.Leaders(deployment, facts.observed.groups, key, has_older)
    return deployments.assess(facts.lws, leaders, now)


def _abandoned(facts: SetFacts) -> Sequence[JSONObject]:
    records = facts.observed.records
    return leftovers.unfollowed(records, leaders_of(facts.observed)) if records else ()
