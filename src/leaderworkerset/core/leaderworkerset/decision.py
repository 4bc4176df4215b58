"""What a decision about a LeaderWorkerSet is made from, and what it is: facts in, a plan and what to remember out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Plan
from leaderworkerset.core.leaderworkerset.edition import Edition, LastApply, Source
from leaderworkerset.core.leaderworkerset.fold import Folded
from leaderworkerset.core.leaderworkerset.gatedleaders import GatedLeaders
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts
from leaderworkerset.core.policies.policy import Parent


class OnDemand(Enum):
    """What must be read before a plan is performed, since caches may be behind with it (`controllers/leaders.py`)."""

    LEADERS = auto()
    """An update or a move begins: no leader that stays may be deleted already. Otherwise the plan is void."""
    HISTORY = auto()
    """Revisions are retired: the StatefulSet may be of none of them. Then the decision is made again with the history."""
    NAMESPACE = auto()
    """Evidence stays: its namespace may not be on its way out, as that waits for all pods before it deletes anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLeaderWorkerSet:
    """The facts about a LeaderWorkerSet: itself, and the objects that carry its name.

    `folded` is the fold of `groups` if the caller keeps it up to date, `leaders` are the groups by the names of their
    leaders; if absent, both are computed. `history` is None as long as it was not read. `records` are those of
    recreations. `unused_pod_groups` are those of groups that no pod names, `gang_kinds` the kinds of `gang_objects` that
    the API server serves, `parent` is the Workload of an owner, where it describes the groups. `edition` and `applied` are
    what earlier decisions led to, if known. `leader_deployment` and `gated` are of groups with random keys, which have no
    leader StatefulSet. `evidence` are the pods that the finalizer of exhausted groups keeps, also those of a
    LeaderWorkerSet that is gone. `service_conflict` says whose the shared service is, if it is another object's. `leaving`
    are the leaders of groups with pods on nodes that are closed for maintenance, and these nodes' names.
    """

    leaderworkerset: JSONObject | None
    leader_statefulset: JSONObject | None = None
    revisions: Sequence[JSONObject] = ()
    has_shared_service: bool = False
    service_conflict: str = ""
    groups: Collection[GroupFacts] = ()
    folded: Folded | None = None
    leaders: Mapping[str, GroupFacts] | None = None
    gang_objects: Sequence[JSONObject] = ()
    unused_pod_groups: Sequence[JSONObject] = ()
    gang_kinds: Collection[Resource] = ()
    parent: Parent = None
    history: Sequence[JSONObject] | None = None
    records: Sequence[JSONObject] = ()
    edition: Edition | None = None
    applied: LastApply | None = None
    leader_deployment: JSONObject | None = None
    gated: GatedLeaders = field(default_factory=GatedLeaders)
    evidence: Sequence[JSONObject] = ()
    leaving: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """A plan, what must be read before it is performed, and what to remember for the next decision.

    That is the edition, the source of the leader StatefulSet or Deployment, which is applied if the plan applies one, and
    the groups that end without being replaced.
    """

    plan: Plan
    needs: frozenset[OnDemand] = frozenset()
    edition: Edition | None = None
    source: Source | None = None
    surplus: Mapping[str, bool] = field(default_factory=dict)
