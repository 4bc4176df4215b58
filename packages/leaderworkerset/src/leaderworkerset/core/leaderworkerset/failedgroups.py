"""Determines which exhausted groups are preserved as evidence, and updates the restart counts of groups.

| an exhausted group is deleted | its count |
|---|---|
| when a user recovers it, or resumes all groups of the LeaderWorkerSet | is cleared |
| when it would end anyway: scaled down, or replaced by a new template (N-RB-6) | is cleared if its keys are random |
| with its LeaderWorkerSet, or with the object that keeps its leaders | is deleted with the LeaderWorkerSet |

So evidence does not delay a deletion. The finalizer is removed as soon as the manager observes that the LeaderWorkerSet
or its namespace is being deleted. Recreation records that no group needs are also deleted.

Input: the LeaderWorkerSet, its leader workload, its groups, and the pods with the finalizer. Output: the pods to
release, and the desired counts.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action
from leaderworkerset.api import groupname, labels, recreationrecord
from leaderworkerset.core.leaderworkerset.decision import SetFacts
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.restarts import retention
from leaderworkerset.core.restarts.counts import Counts, Key


class FailedGroups(Struct, frozen=True):
    """The actions that release pods, and the groups whose restart counts are reset."""

    actions: tuple[Action, ...] = ()
    reset_keys: Collection[Key] = ()


def find_failed_groups(facts: SetFacts) -> FailedGroups:
    """Determine the pods of exhausted leaders that retain the finalizer. The table contains the exceptions."""
    kept = facts.observed.evidence
    exhausted = sorted(
        (pod for pod in kept if groupname.is_leader(pod) and groupname.is_finished(pod)), key=meta.by_age
    )
    recovered = {meta.name(pod) for pod in _resumed_leaders(facts.obj, exhausted, facts.observed.records)}
    others = [pod for pod in exhausted if meta.name(pod) not in recovered]
    ended = {
        meta.name(pod) for pod in (_removed_keyed_leaders if facts.is_hash else _removed_ordinal_leaders)(facts, others)
    }
    staying = {meta.name(pod) for pod in others} - ended
    cleared = recovered | ended if facts.is_hash else recovered
    return FailedGroups(
        retention.remove_finalizer([pod for pod in kept if groupname.leader_name(pod) not in staying]),
        {Key.from_leader(pod) for pod in exhausted if meta.name(pod) in cleared},
    )


def _resumed_leaders(
    obj: JSONObject, exhausted: Sequence[JSONObject], records: Iterable[JSONObject]
) -> Iterator[JSONObject]:
    """Yield the leaders of groups that a user resumes, individually or by a changed annotation for all groups."""
    resumed = meta.annotations(obj).get(labels.RESUME_GROUP_RESTARTS, "")
    known = {
        recreation.leader: recreation.resumed for record in records if (recreation := recreationrecord.read(record))
    }
    for leader in exhausted:
        if retention.is_recovered(leader) or known.get(meta.uid(leader), resumed) != resumed:
            yield leader


def _removed_ordinal_leaders(facts: SetFacts, exhausted: Sequence[JSONObject]) -> Iterator[JSONObject]:
    """Yield the leaders that their StatefulSet will delete because of the owner, the replicas or the template."""
    living, current = facts.leader_workload, facts.current
    if living is None or current is None:
        return
    for leader in exhausted:
        index = decimals.natural(groupname.group_label(leader))
        is_rolled = current.revision not in ("", groupname.revision_key(leader))
        bound = min(current.replicas, current.partition) if is_rolled else current.replicas
        if meta.is_of_predecessor(leader, living) or (index is not None and index >= bound):
            yield leader


def _removed_keyed_leaders(facts: SetFacts, exhausted: Sequence[JSONObject]) -> Iterator[JSONObject]:
    """Yield the leaders of a previous LeaderWorkerSet or template, and the youngest surplus leaders."""
    key = "" if facts.current is None else facts.current.revision
    of_this = [
        pod
        for pod in exhausted
        if meta.creation_timestamp(pod) >= meta.creation_timestamp(facts.obj)
        and key in ("", groupname.revision_key(pod))
    ]
    yield from (pod for pod in exhausted if pod not in of_this)
    live = [group for group in facts.observed.groups.values() if not group.is_deleting and not group.is_exhausted]
    of_key = [group for group in live if group.revision == key]
    gated = sum(group.has_replacement_gate for group in of_key)
    active = len(of_key) - gated + max(0, gated - len(of_this))
    yield from of_this[max(0, facts.lws.spec.replicas - active) :] if key else ()


def retained_counts(facts: SetFacts, counts: Counts, admitted: Sequence[JSONObject]) -> Counts:
    """Return the counts of existing groups and groups that are being recreated (N-RB-11, N-RB-13, N-RB-14).

    `admitted` are leaders with random keys that are admitted now. Raise ValueError for a key without an index if groups
    have indexes.
    """
    replicas = facts.lws.spec.replicas
    if not facts.is_hash:
        bound = replicas if facts.current is None else max(replicas, facts.current.replicas)
        return {key: count for key, count in counts.items() if key.ordinal < bound}
    owners = {
        group.group_index: group
        for group in facts.observed.groups.values()
        if not group.is_deleting or group.is_exhausted
    }
    claimed = _assign_counts(counts, admitted, owners)
    placed = [group for group in owners.values() if not group.has_replacement_gate]
    key = "" if facts.current is None else facts.current.revision
    ahead = {groupname.group_label(leader) for leader in admitted}
    free = replicas - sum(group.revision == key and group.group_index not in ahead for group in placed) - len(ahead)
    unclaimed = _keys_without_leader(claimed, key, owners)[max(free, 0) :]
    return {key: count for key, count in claimed.items() if key not in unclaimed}


def _assign_counts(counts: Counts, admitted: Sequence[JSONObject], owners: Mapping[str, GroupFacts]) -> Counts:
    """Assign the highest restart count without a leader to each admitted leader without a count (N-RB-13)."""
    claimed = dict(counts)
    for leader in admitted:
        key = Key.from_leader(leader)
        free = _keys_without_leader(claimed, key.revision, owners)
        if key not in claimed and free:
            claimed[key] = claimed.pop(free[0])
    return claimed


def _keys_without_leader(counts: Counts, revision: str, owners: Mapping[str, GroupFacts]) -> list[Key]:
    """Return the keys in a revision whose groups no longer have a leader, highest count first."""
    keys = [key for key in counts if key.revision == revision and key.group not in owners]
    return sorted(keys, key=lambda key: (-counts[key], key))


def obsolete_records(facts: SetFacts) -> list[JSONObject]:
    """Return the records of groups that will not be recreated."""
    records, groups = facts.observed.records, facts.observed.groups
    if facts.is_hash:
        return records_without_replacement(records, groups)
    return records_of_removed_groups(records, groups, facts.lws.spec.replicas)


def records_of_removed_groups(
    records: Iterable[JSONObject], leaders: Mapping[str, GroupFacts], replicas: int
) -> list[JSONObject]:
    """Return the records of groups without a leader that were deleted by a scale-down."""
    return [
        record
        for record in records
        if recreationrecord.leader_of(record) not in leaders
        and (index := decimals.natural(groupname.group_label(record))) is not None
        and index >= replicas
    ]


def records_without_replacement(records: Iterable[JSONObject], leaders: Mapping[str, GroupFacts]) -> list[JSONObject]:
    """Return the records of deleted groups with random keys that are not replaced."""
    needed = leaders.keys() | {group.replaced_group for group in leaders.values()}
    return [record for record in records if recreationrecord.leader_of(record) not in needed]
