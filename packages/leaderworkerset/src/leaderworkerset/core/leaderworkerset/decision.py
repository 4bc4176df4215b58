"""The input and the result of a decision about a LeaderWorkerSet: facts, and a plan with the facts to remember.

`ordinalleaders.py` or `hashleaders.py` decides about the leaders of all groups. `reconcile.py` makes the plan from that
decision.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct, field

from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Delete, Event, Plan
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset.edition import Edition, LastApply, Source
from leaderworkerset.core.leaderworkerset.fold import Folded
from leaderworkerset.core.leaderworkerset.gatedleaders import NO_REPLACEMENT, GatedLeaders, Replacement
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts
from leaderworkerset.core.leaderworkerset.revisions import Resolution
from leaderworkerset.core.leaderworkerset.rollingupdate import Rollout
from leaderworkerset.core.leaderworkerset.status import Assessment
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.core.policies.policy import NO_SERVICE, NOT_SCHEDULED, HeadlessService, SchedulingObjects


class OnDemand(Enum):
    """The objects to read before a plan is performed, since caches may be behind (`controllers/leaders.py`)."""

    LEADERS = auto()
    """An update begins, or a capability deletes leaders; the plan is void if another leader is being deleted."""
    HISTORY = auto()
    """Revisions are created or retired, so the cache must show the StatefulSet's revision. Repeat it with the history."""
    KEEPER = auto()
    """It is unknown whether the leaders' keeper is already as desired; the decision is repeated with that object."""
    NAMESPACE = auto()
    """Evidence is kept, so its namespace must not be terminating: it deletes other objects only after all pods."""


class Known(Struct, frozen=True, kw_only=True):
    """The results of earlier decisions, and the objects that were read from the API server for this one.

    `applied` is the source of the last apply of the leaders' keeper, `whole` the keeper with all its fields. `history`
    are the retired revisions. Each is None if it is not known.
    """

    edition: Edition | None = None
    applied: LastApply | None = None
    whole: JSONObject | None = None
    history: Sequence[JSONObject] | None = None


NOTHING_KNOWN: Final = Known()
"""No earlier decision, and nothing was read."""


class ObservedLeaderWorkerSet(Struct, frozen=True, kw_only=True):
    """The facts about a LeaderWorkerSet: itself, and the objects that carry its name.

    `keeper` keeps the leaders: a StatefulSet, or a Deployment if groups have random keys. `gated` are the gated leaders
    of such groups. `groups` are by the names of their leaders; `folded` is their fold if the caller keeps it up to
    date, otherwise it is computed. `records` are the records of recreations. All groups share the `service`. `evidence`
    are the pods that the finalizer of exhausted groups keeps, also if the LeaderWorkerSet is deleted. `unreachable` are
    the ready leaders without workers whose own service belongs to another owner. `facts` are the observed facts of
    capabilities, by their names.
    """

    leaderworkerset: JSONObject | None
    keeper: JSONObject | None = None
    revisions: Sequence[JSONObject] = ()
    records: Sequence[JSONObject] = ()
    service: HeadlessService = NO_SERVICE
    groups: Mapping[str, GroupFacts] = field(default_factory=dict)
    folded: Folded | None = None
    gated: GatedLeaders = field(default_factory=GatedLeaders)
    scheduling: SchedulingObjects = NOT_SCHEDULED
    evidence: Sequence[JSONObject] = ()
    unreachable: frozenset[str] = frozenset()
    known: Known = NOTHING_KNOWN
    facts: Mapping[str, Any] = field(default_factory=dict)


class SetFacts(Struct, frozen=True):
    """The observed state with the decoded LeaderWorkerSet, and the revision that its groups must have.

    `living` is the keeper of the leaders.
    """

    observed: ObservedLeaderWorkerSet
    obj: JSONObject
    lws: LeaderWorkerSet
    revision: Resolution
    gang: Gang
    living: JSONObject | None


class LeaderDecision(Struct, frozen=True, kw_only=True):
    """The decision about the leaders, and the status that follows from their state.

    `applied` is the desired keeper of the leaders, None if nothing is applied; `updating` are the events of an update.
    If nothing is applied, the `actions` are performed. The plan `is_void_if_behind` if caches are late, as when an
    update begins. The status is assessed once the keeper is observed (R-STAT-2), unless there is an `error`. Leaders
    with random keys have a `turn`, leaders with ordinals a `rollout`.
    """

    source: Source
    actions: tuple[Action, ...]
    applied: JSONObject | None
    updating: Sequence[Event] = ()
    is_void_if_behind: bool = False
    assessment: Assessment | None
    error: str | None = None
    turn: Replacement = NO_REPLACEMENT
    rollout: Rollout | None = None

    @property
    def is_still(self) -> bool:
        """Return whether nothing here deletes leaders now, or updates groups in place."""
        if self.applied is not None or self.actions:
            return False
        step = self.rollout
        return step is None or (step.at_step and not step.released | step.folded.updating)


def delete_leader(facts: SetFacts, group: GroupFacts, event: Event) -> Delete:
    """Delete the leader of a group, in the foreground: first the objects that it owns."""
    key = ObjectKey(facts.lws.namespace, group.leader)
    return Delete(resource=PODS, key=key, propagation="Foreground", uid=group.uid, on_success=(event,))


class Decision(Struct, frozen=True):
    """A plan, the objects to read before it is performed, and the facts to remember for the next decision.

    The facts are the edition, the source of the leader StatefulSet or Deployment if the plan applies it, and the groups
    that end without a replacement. `applied` is set if the keeper of the leaders was compared and is as desired.
    """

    plan: Plan
    needs: frozenset[OnDemand] = frozenset()
    edition: Edition | None = None
    source: Source | None = None
    surplus: Mapping[str, bool] = field(default_factory=dict)
    applied: LastApply | None = None
