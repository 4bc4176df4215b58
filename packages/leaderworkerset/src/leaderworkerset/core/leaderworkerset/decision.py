"""Defines the input and output of LeaderWorkerSet reconciliations, and results for later reconciliations.

`statefulsetleaders.py` or `deploymentleaders.py` computes the actions for the leaders of all groups. `reconcile.py`
builds the plan from the result.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Delete, Event, Plan
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset.cachedapply import LastApply, Source
from leaderworkerset.core.leaderworkerset.gatedleaders import NO_REPLACEMENT, GatedLeaders, Replacement
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex, RolloutRoute
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from leaderworkerset.core.leaderworkerset.revisions import Resolution, RevisionGeneration
from leaderworkerset.core.leaderworkerset.rollingupdate import Rollout
from leaderworkerset.core.leaderworkerset.status import Assessment
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.core.policies.policy import NO_SERVICE, NOT_SCHEDULED, HeadlessService, SchedulingObjects


class PreviousResults(Struct, frozen=True, kw_only=True):
    """The results of earlier reconciliations, and the objects that were read from the API server.

    `applied` is the source of the last apply of the leader workload, and `complete_workload` is the leader workload with all
    fields. `history` are the retired revisions. Each value is None if it is unknown.
    """

    revision_generation: RevisionGeneration | None = None
    applied: LastApply | None = None
    complete_workload: JSONObject | None = None
    history: Sequence[JSONObject] | None = None


NO_RESULTS: Final = PreviousResults()
"""The value without previous results and without objects from the API server."""


class ObservedLeaderWorkerSet(Struct, frozen=True, kw_only=True):
    """A LeaderWorkerSet and the objects with its name label.

    `leader_workload` is the leader workload: a StatefulSet, or a Deployment if groups have random keys. `gated` are the gated
    leaders of such groups. `groups` maps leader names to groups. `group_summary` is their summary if the caller keeps it up to
    date. Otherwise, it is computed. `records` are the recreation records. All groups share the `service`. `evidence`
    are the pods that the finalizer for exhausted groups keeps, also if the LeaderWorkerSet is deleted. `unreachable`
    are the ready leaders without workers whose own Service has a different owner. `facts` is the observed state for
    capabilities, by capability name.
    """

    leaderworkerset: JSONObject | None
    leader_workload: JSONObject | None = None
    revisions: Sequence[JSONObject] = ()
    records: Sequence[JSONObject] = ()
    service: HeadlessService = NO_SERVICE
    groups: Mapping[str, GroupFacts] = field(default_factory=dict)
    group_summary: GroupIndex | None = None
    gated: GatedLeaders = field(default_factory=GatedLeaders)
    scheduling: SchedulingObjects = NOT_SCHEDULED
    evidence: Sequence[JSONObject] = ()
    unreachable: frozenset[str] = frozenset()
    known: PreviousResults = NO_RESULTS
    facts: Mapping[str, Any] = field(default_factory=dict)


class SetFacts(Struct, frozen=True):
    """The observed state with the decoded LeaderWorkerSet, and the desired revision of its groups.

    `leader_workload` is the leader workload, and `current` its rollout progress. `group_summary` is the summary of groups with
    indexes, and empty for groups with random keys (`is_hash`). If `has_signs` is false, capabilities cannot change the
    plan, and are not called. A capability can add a `route`, which is the in-place update of groups.
    """

    observed: ObservedLeaderWorkerSet
    obj: JSONObject
    lws: LeaderWorkerSet
    revision: Resolution
    gang: Gang
    leader_workload: JSONObject | None
    group_summary: GroupIndex
    current: StatefulSetProgress | None
    is_hash: bool
    has_signs: bool = False
    route: RolloutRoute | None = None


class LeaderDecision(Struct, frozen=True, kw_only=True):
    """The decision about the leaders, and the resulting status.

    `applied` is the desired leader workload, or None if nothing is applied. `update_events` are the events of an update. If
    nothing is applied, the `actions` are performed. The status is computed when the leader workload is observed
    (R-STAT-2), unless there is an `error`. Leaders with random keys have a `replacement`, and leaders with ordinals have a
    `rollout`.
    """

    source: Source
    actions: tuple[Action, ...]
    applied: JSONObject | None
    update_events: Sequence[Event] = ()
    assessment: Assessment | None
    error: str | None = None
    replacement: Replacement = NO_REPLACEMENT
    rollout: Rollout | None = None

    @property
    def leaves_groups_unchanged(self) -> bool:
        """Return whether the plan neither deletes leaders nor updates groups in place."""
        if self.applied is not None or self.actions:
            return False
        step = self.rollout
        return step is None or (step.is_at_step and not step.released | step.group_summary.updating)


def delete_leader(facts: SetFacts, group: GroupFacts, event: Event) -> Delete:
    """Delete the leader of a group with foreground propagation, so that its dependents are deleted first."""
    key = ObjectKey(facts.lws.namespace, group.leader)
    return Delete(resource=PODS, key=key, propagation="Foreground", uid=group.uid, on_success=(event,))


class Decision(Struct, frozen=True):
    """A plan, and the results for the next reconciliation.

    The values are the generation of the revision, the source of the leader StatefulSet or Deployment if the plan applies it, and the
    groups that terminate without a replacement. `applied` is set if the leader workload was compared and is as desired.
    """

    plan: Plan
    revision_generation: RevisionGeneration | None = None
    source: Source | None = None
    surplus: Mapping[str, bool] = field(default_factory=dict)
    applied: LastApply | None = None
