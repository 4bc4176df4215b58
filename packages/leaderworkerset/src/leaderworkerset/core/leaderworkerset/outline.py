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
from leaderworkerset.core import decisionevents
from leaderworkerset.core.extensions import Extensions
from leaderworkerset.core.leaderworkerset import deploymentleaders, outdatedleaders, revisions, status, statuswrites
from leaderworkerset.core.leaderworkerset.decision import ObservedLeaderWorkerSet, PreviousResults, SetFacts
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex, index_groups
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
            revision = revisions.resolve(
                facts.obj, facts.living, observed.revisions, known.revision_generation, known.history
            )
        return replace(facts, observed=observed, revision=revision)


def outline(observed: ObservedLeaderWorkerSet, now: datetime, gang: Gang, extensions: Extensions) -> Outline | Plan:
    """Prepare the actions for leaders, or return a plan that does not change leaders."""
    obj, living = observed.leaderworkerset, observed.leader_workload
    if obj is None or meta.is_deleting(obj):
        return Plan(retention.release(observed.evidence) if observed.evidence else ())
    try:
        lws = leaderworkerset.decode(obj)
        if living is not None and (instead := _set_aside(observed, obj, lws, living, now)) is not None:
            return instead
        known = observed.known
        revision = revisions.resolve(obj, living, observed.revisions, known.revision_generation, known.history)
        facts = SetFacts(observed, obj, lws, revision, gang, living, _fold(observed, lws))
        return Outline(facts, _reads(facts, now, extensions))
    except ValueError as error:
        return statuswrites.report_unreadable(obj, error, now)


def _fold(observed: ObservedLeaderWorkerSet, lws: LeaderWorkerSet) -> GroupIndex:
    if lws.spec.group_identity.is_hash:
        return GroupIndex()
    return index_groups(observed.groups.values(), lws.name) if observed.folded is None else observed.folded


def _reads(facts: SetFacts, now: datetime, extensions: Extensions) -> frozenset[Read]:
    known = facts.observed.known
    conditions = {
        Read.LEADERS: _may_start(facts) or extensions.sets.deletes_leaders(facts),
        Read.HISTORY: known.history is None and _changes_history(facts, now),
        Read.WORKLOAD: facts.living is not None and known.applied is None and known.whole is None,
        Read.NAMESPACE: bool(facts.observed.evidence),
    }
    return frozenset(read for read, is_needed in conditions.items() if is_needed)


def outdated_revisions(facts: SetFacts) -> Sequence[JSONObject]:
    """Return the revisions from which no pods will be created after the update is complete (R-REV-14)."""
    outdated = revisions.obsolete_revisions(
        revisions.owned_revisions(facts.observed.revisions, facts.obj), facts.revision.key
    )
    if not outdated or facts.living is None or facts.lws.spec.group_identity.is_hash:
        return outdated
    return () if may_create_older(facts.living, facts.revision.key) else outdated


def _may_start(facts: SetFacts) -> bool:
    """Return whether the leader StatefulSet delays all groups, and the next step might release some groups."""
    if facts.living is None or facts.lws.spec.group_identity.is_hash:
        return False
    current = outdatedleaders.position(facts.living)
    return current.partition >= current.replicas and current.partition > facts.lws.rolling_update.partition


def _changes_history(facts: SetFacts, now: datetime) -> bool:
    """Return whether a revision is created or deleted. A new LeaderWorkerSet has no history."""
    if facts.revision.created is not None:
        return facts.living is not None or meta.generation(facts.obj) > 1
    if facts.living is None or len(facts.observed.revisions) < 2:
        return False
    return bool(outdated_revisions(facts)) and _is_update_done(facts, facts.living, now)


def _is_update_done(facts: SetFacts, living: JSONObject, now: datetime) -> bool:
    if facts.lws.spec.group_identity.is_hash:
        return deploymentleaders.assess(facts.lws, deploymentleaders.leaders_of(facts, living), now).is_update_done
    try:
        return status.is_update_done(facts.lws, status.count(facts.lws, facts.folded, facts.revision.key))
    except status.UnknownIndexError:
        return False


def _set_aside(
    observed: ObservedLeaderWorkerSet, obj: JSONObject, lws: LeaderWorkerSet, living: JSONObject, now: datetime
) -> Plan | None:
    """Return a plan without changes if the leader workload is terminating or has a different owner.

    The garbage collector soon deletes the workload of a previous LeaderWorkerSet with the same name. If it were used,
    the revision of a deleted spec would be reused (unlike a search by name only, R-LSTS-4).
    """
    if meta.is_deleting(living) or meta.is_of_predecessor(living, obj):
        return Plan(retention.release(observed.evidence), RECHECK_DELETION)
    if not groupname.is_foreign_leader_workload(living, obj):
        return None
    why = f"{living['kind']} {lws.name} {meta.describe_controller(living)}. Delete one of them, or use a different name"
    note = f"Failed to create leader {living['kind'].lower()} {lws.name}: {why}"
    event = decisionevents.failed_create(obj, note)
    return Plan(
        (Emit(events=(event,)), *statuswrites.report_rejected(obj, lws, None, now)),
        error=f"LeaderWorkerSet {meta.key(obj)}: {why}",
    )
