"""What is decided about the leaders of all groups, whatever keeps them (`ordinalleaders.py`, `hashleaders.py`).

In: `SetFacts`, the observed state as both read it. Out: `LeaderDecision`, from which `reconcile.py` makes the plan.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from kuberuntime.plan import Action, Delete, Emit, Event, Together
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet
from leaderworkerset.core.leaderworkerset.edition import Source
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts
from leaderworkerset.core.leaderworkerset.revisions import Resolution
from leaderworkerset.core.leaderworkerset.status import Assessment
from leaderworkerset.core.policies.gang import Gang


@dataclass(frozen=True, slots=True)
class SetFacts:
    """The observed state with the decoded LeaderWorkerSet, and the revision its groups shall have.

    `living` is what keeps the leaders: a StatefulSet, or a Deployment where groups have random keys.
    """

    observed: ObservedLeaderWorkerSet
    obj: JSONObject
    lws: LeaderWorkerSet
    revision: Resolution
    gang: Gang
    living: JSONObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderDecision:
    """What to do with the leaders, and what their state says.

    `applied` is what shall keep them, if it is to be applied, of this `resource`, after what is `announced`; otherwise come the
    `actions`. `begins` tells that an update begins thereby, whose events are `updating`, `at_step` that it may change nothing.
    The status is assessed once what keeps them is observed (R-STAT-2), unless there is an `error`. `may_create_older` tells that pods of older revisions may
    still be created. `surplus` are groups that end without being replaced, `abandoned` the records of groups that no action
    would delete, `admitted` the leaders with random keys that go ahead now. It `moves` groups whose leaders are deleted as
    their nodes are closed; all that have to leave are `waiting`, by the names of their leaders, with these nodes.
    """

    resource: Resource
    source: Source
    actions: tuple[Action, ...]
    applied: JSONObject | None
    announced: Sequence[Emit] = ()
    updating: Sequence[Event] = ()
    begins: bool = False
    at_step: bool
    assessment: Assessment | None
    error: str | None = None
    may_create_older: bool = False
    surplus: Mapping[str, bool] = field(default_factory=dict)
    abandoned: Sequence[JSONObject] = ()
    admitted: Sequence[JSONObject] = ()
    moves: bool = False
    waiting: Mapping[str, Collection[str]] = field(default_factory=dict)


def leaders_of(observed: ObservedLeaderWorkerSet) -> Mapping[str, GroupFacts]:
    """Return the groups by the names of their leaders."""
    known = observed.leaders
    return {group.leader: group for group in observed.groups} if known is None else known


def move(facts: SetFacts, groups: Sequence[GroupFacts]) -> tuple[Action, ...]:
    """Delete the leaders of groups that move off closed nodes."""
    deletions = (
        Delete(
            resource=PODS,
            key=ObjectKey(facts.lws.namespace, group.leader),
            propagation="Foreground",
            uid=group.uid,
            on_success=(decisionevents.moving_group(facts.obj, group.leader, facts.observed.leaving[group.leader]),),
        )
        for group in groups
    )
    return (Together(sequences=tuple((one,) for one in deletions)),) if groups else ()
