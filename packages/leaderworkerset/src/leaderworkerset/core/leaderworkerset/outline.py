"""Prepares the reconciliation of a LeaderWorkerSet by decoding it, finding its revision and listing required reads.

In: the observed state, from caches only. Out: `SetFacts` for `reconcile.py` and the reads that complete them
(`controllers/leaderreads.py`), or the whole plan if nothing is decided about the leaders. Caches may be stale, or may lack
fields. Each `Read` has a condition that depends only on the observed state.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum, auto
from typing import Final, NamedTuple

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Emit, Plan
from leaderworkerset.api import groupname, leaderworkerset
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.policytypes import WITH_RANDOM_KEYS
from leaderworkerset.core import decisionevents
from leaderworkerset.core.extensions import Extensions, SetHook
from leaderworkerset.core.leaderworkerset import deploymentleaders, outdatedleaders, revisions, status, statuswrites
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet, PreviousResults, SetFacts
from leaderworkerset.core.leaderworkerset.groupindex import index_groups
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from leaderworkerset.core.leaderworkerset.revisions import Resolution
from leaderworkerset.core.leaderworkerset.rollingupdate import may_create_older
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.core.restarts import retention

RECHECK_DELETION: Final = 5.0
"""The seconds until a LeaderWorkerSet whose leader StatefulSet is being deleted is reconciled again (R-LSTS-6)."""


class Read(Enum):
    """The objects that a reconciliation requires in addition to the caches."""

    LEADERS = auto()
    """An update might start, or a capability might delete leaders.

    The caches must contain all terminating leaders.
    """
    HISTORY = auto()
    """Revisions are created or deleted. The caches must contain the revision of the leader workload."""
    WORKLOAD = auto()
    """The leader workload might not match the desired state, because caches do not contain all its fields."""
    NAMESPACE = auto()
    """Pods are preserved as evidence. A terminating namespace would wait for them."""


class Outline(NamedTuple):
    """The input of a reconciliation, and the objects that must be read before it."""

    facts: SetFacts
    reads: frozenset[Read]

    def complete(self, known: PreviousResults) -> SetFacts:
        """Return the input with the additional objects. The history can contain the revision."""
        facts = self.facts
        observed, revision = replace(facts.observed, known=known), facts.revision
        if known.history is not None:
            revision = _resolve(facts.obj, facts.current, observed)
        return replace(facts, observed=observed, revision=revision)


def build_outline(
    observed: ObservedLeaderWorkerSet, now: datetime, gang: Gang, extensions: Extensions
) -> Outline | Plan:
    """Prepare the actions for leaders, or return a plan that does not change leaders."""
    obj, living = observed.leaderworkerset, observed.leader_workload
    if obj is None or obj["metadata"].get("deletionTimestamp") is not None:
        return Plan(retention.remove_finalizer(observed.evidence) if observed.evidence else ())
    try:
        lws = leaderworkerset.decode(obj)
        if living is not None and (instead := _blocked_plan(observed, obj, lws, living, now)) is not None:
            return instead
        facts = _describe(observed, obj, lws, gang)
        if _has_signs(facts, extensions.sets):
            facts = extensions.sets.prepare(replace(facts, has_signs=True))
        return Outline(facts, _required_reads(facts, now, extensions))
    except ValueError as error:
        return statuswrites.report_unreadable(obj, error, now)


def _describe(observed: ObservedLeaderWorkerSet, obj: JSONObject, lws: LeaderWorkerSet, gang: Gang) -> SetFacts:
    living, group_summary, current = observed.leader_workload, observed.group_summary, None
    is_hash = lws.spec.group_identity in WITH_RANDOM_KEYS
    if living is not None:
        current = deploymentleaders.read_progress(living) if is_hash else outdatedleaders.read_progress(living)
    if group_summary is None or is_hash:
        group_summary = index_groups(() if is_hash else observed.groups.values(), lws.name)
    return SetFacts(observed, obj, lws, _resolve(obj, current, observed), gang, living, group_summary, current, is_hash)


def _resolve(obj: JSONObject, current: StatefulSetProgress | None, observed: ObservedLeaderWorkerSet) -> Resolution:
    key, known = "" if current is None else current.revision, observed.known
    return revisions.resolve(obj, key, observed.revisions, known.revision_generation, known.history)


def _has_signs(facts: SetFacts, hook: SetHook) -> bool:
    """Return whether a capability might change the plan (docs/adr/0039-capabilities.md)."""
    return (
        not hook.settings.isdisjoint(facts.lws.metadata.annotations)
        or any(facts.observed.facts.values())
        or bool(facts.group_summary.updating)
        or any(condition.type in hook.conditions for condition in facts.lws.status.conditions)
    )


def _required_reads(facts: SetFacts, now: datetime, extensions: Extensions) -> frozenset[Read]:
    known = facts.observed.known
    conditions = {
        Read.LEADERS: _may_start(facts) or (facts.has_signs and extensions.sets.deletes_leaders(facts)),
        Read.HISTORY: known.history is None and _changes_history(facts, now),
        Read.WORKLOAD: facts.leader_workload is not None and known.applied is None and known.complete_workload is None,
        Read.NAMESPACE: bool(facts.observed.evidence),
    }
    return frozenset(read for read, is_needed in conditions.items() if is_needed)


def outdated_revisions(facts: SetFacts) -> Sequence[JSONObject]:
    """Return the revisions from which no pods will be created after the update is complete (R-REV-14)."""
    obsolete = facts.revision.obsolete
    if not obsolete or facts.leader_workload is None or facts.is_hash:
        return obsolete
    return () if may_create_older(facts.leader_workload, facts.revision.key) else obsolete


def _may_start(facts: SetFacts) -> bool:
    """Return whether the leader StatefulSet delays all groups, and the next step might release some groups."""
    current = facts.current
    if current is None or facts.is_hash or current.partition < current.replicas:
        return False
    return current.partition > facts.lws.spec.rollout_strategy.rolling_update_configuration.partition


def _changes_history(facts: SetFacts, now: datetime) -> bool:
    """Return whether a revision is created or deleted. A new LeaderWorkerSet has no history."""
    if facts.revision.created is not None:
        return facts.leader_workload is not None or facts.lws.metadata.generation > 1
    return (
        facts.leader_workload is not None
        and bool(outdated_revisions(facts))
        and _is_update_done(facts, facts.leader_workload, now)
    )


def _is_update_done(facts: SetFacts, living: JSONObject, now: datetime) -> bool:
    if facts.is_hash:
        return deploymentleaders.assess(facts.lws, deploymentleaders.leaders_of(facts, living), now).is_update_done
    try:
        return status.is_update_done(facts.lws, status.count(facts.lws, facts.group_summary, facts.revision.key))
    except status.UnknownIndexError:
        return False


def _blocked_plan(
    observed: ObservedLeaderWorkerSet, obj: JSONObject, lws: LeaderWorkerSet, living: JSONObject, now: datetime
) -> Plan | None:
    """Return a plan without changes if the leader workload is terminating or has a different owner.

    The garbage collector soon deletes the workload of a previous LeaderWorkerSet with the same name. If it were used,
    the revision of a deleted spec would be reused (unlike a search by name only, R-LSTS-4).
    """
    is_ending = living["metadata"].get("deletionTimestamp") is not None
    if not is_ending and meta.is_controlled(living, obj):
        return None
    if is_ending or meta.is_of_predecessor(living, obj):
        return Plan(retention.remove_finalizer(observed.evidence), RECHECK_DELETION)
    if not groupname.is_foreign_leader_workload(living, obj):
        return None
    why = f"{living['kind']} {lws.name} {meta.describe_controller(living)}. Delete one of them, or use a different name"
    note = f"Failed to create leader {living['kind'].lower()} {lws.name}: {why}"
    event = decisionevents.failed_create(obj, note)
    return Plan(
        (Emit(events=(event,)), *statuswrites.report_rejected(obj, lws, None, now)),
        error=f"LeaderWorkerSet {meta.key(obj)}: {why}",
    )
