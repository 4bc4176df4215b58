"""Represents the groups of a LeaderWorkerSet as index sets, so that a reconciliation reads only relevant groups.

A set of indexes is an integer in which bit i stands for group i. Decisions count the bits in intersections of a few
sets. A thousand groups need 16 machine words. The sets depend neither on the size nor on the revision in the spec. So a
change of a group changes only its own bits.

A group is irregular if its objects are not named after its index. A group is also irregular if its index is much larger
than the number of leaders, or if there are too many revisions. Users can write any label, but memory usage must depend
only on existing objects. An irregular group is kept separately, counted by the status, and missing for the rollout
(R-ROLL-8, R-STAT-5).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts

FEWEST: Final = 4096
"""The index limit for every LeaderWorkerSet. It requires half a KiB for each index set."""

SPARSEST: Final = 16
"""The maximum ratio of an index to the number of leaders, for indexes above `FEWEST`."""

MOST_REVISIONS: Final = 64
"""The maximum number of concurrent revisions of the regular groups in a LeaderWorkerSet."""

ALL: Final = -1
"""The index set that contains all indexes."""


class GroupState(NamedTuple):
    """The state of one group for the rollout."""

    is_ready: bool
    is_updated: bool


class States(NamedTuple):
    """Three sets of group indexes: ready, updated and gated groups. Other groups are not ready or do not exist.

    Groups in `moving` are waiting to be moved from closed nodes. Surge groups replace them like updated groups.
    Exhausted groups of an older revision never become ready.
    """

    ready: int
    updated: int
    gated: int = 0
    exhausted: int = 0
    moving: int = 0

    @classmethod
    def from_states(cls, states: Mapping[int, GroupState]) -> "States":
        """Return the index sets for the states, which are specified by index."""
        return cls(
            sum(1 << index for index, state in states.items() if state.is_ready),
            sum(1 << index for index, state in states.items() if state.is_updated),
        )


class GroupIndex(Struct, frozen=True, kw_only=True):
    """An immutable summary of all groups.

    `stranded` groups are `updating` groups that cannot complete their update. The set is empty until it is computed.
    `rejected` is a subset with groups that cannot be resized. `moving` groups must be moved from their nodes. Surge
    groups replace them like updated groups. `exhausted` groups have no successor, and include `complete` and `late`
    groups.
    """

    members: int = 0
    leader_ready: int = 0
    with_workers: int = 0
    workers_ready: int = 0
    workers_named: int = 0
    of_one_revision: int = 0
    deleting: int = 0
    gated: int = 0
    exhausted: int = 0
    updating: int = 0
    rejected: int = 0
    stranded: int = 0
    moving: int = 0
    complete: int = 0
    late: int = 0
    alone: int = 0
    larger: int = 0
    leaders: Mapping[str, int] = field(default_factory=dict)
    workers: Mapping[str, int] = field(default_factory=dict)
    statefulset_revisions: Mapping[str, int] = field(default_factory=dict)
    irregular: Mapping[str, GroupFacts] = field(default_factory=dict)

    @classmethod
    def from_group(cls, group: GroupFacts) -> "GroupIndex":
        """Return the summary of one group with index 0, regardless of its actual index."""
        return _add_group(cls(), group, 0)

    def without_workers(self, size: int) -> int:
        """Return the groups without workers, based on their size at creation or, if unknown, in the spec."""
        return ~self.larger if size == 1 else self.alone

    def available_groups(self, size: int) -> int:
        """Return the groups that are ready at their original size, without workers of a previous leader."""
        complete = (self.workers_ready & self.of_one_revision) | self.without_workers(size)
        return self.leader_ready & ~self.deleting & complete

    def count_updated(self, size: int, revision: str) -> int:
        """Return the groups whose leader and workers have the revision (R-STAT-6)."""
        of_workers = ALL if size == 1 else self.workers.get(revision, 0) | self.exhausted
        return self.leaders.get(revision, 0) & of_workers

    def states(self, size: int, revision: str) -> States:
        """Return the states for the rollout. A group whose workers have a different index is missing (R-ROLL-8).

        Only groups that stay ready are ready. A group whose leader is being deleted, or whose workers belong to an
        earlier leader, is about to be deleted, and must not permit the replacement of a second group.
        """
        complete = self.workers_named | self.without_workers(size)
        ready, updated = self.available_groups(size) & complete, self.count_updated(size, revision) & complete
        exhausted = self.members & ~self.leaders.get(revision, 0) & self.exhausted
        return States(ready, updated, self.gated, exhausted)


class RolloutRoute(Protocol):
    """Defines how groups with older revisions are updated. Some released groups do not require new pods."""

    def release(self, statefulset: JSONObject, group_summary: GroupIndex, size: int, span: range) -> tuple[int, int]:
        """Return the groups in the released `span` of indexes that do not require new pods, and their partition."""


class Groups:
    """The groups of one LeaderWorkerSet by leader, with an immutable summary that is replaced after each change."""

    def __init__(self, name: str) -> None:
        self.by_leader: dict[str, GroupFacts] = {}
        self.summary = GroupIndex()
        self._name = name
        self._limit = FEWEST

    def put(self, leader: str, group: GroupFacts | None) -> None:
        """Record the new state of a leader's group, or None for a deleted leader."""
        old = self.by_leader.pop(leader, None)
        if group is not None:
            self.by_leader[leader] = group
        limit = max(FEWEST, SPARSEST << len(self.by_leader).bit_length())
        if not self._limit // 4 <= limit <= self._limit:
            self._limit, self.summary = limit, GroupIndex()
            for member in self.by_leader.values():
                self._add(member)
        elif group != old:
            self._remove(old)
            self._add(group)

    def _add(self, group: GroupFacts | None) -> None:
        if group is None:
            return
        index = regular_index(group, self._name, self._limit)
        if index is None or self._exceeds_revision_limit(group):
            self.summary = replace(self.summary, irregular={**self.summary.irregular, group.leader: group})
        else:
            self.summary = _add_group(self.summary, group, index)

    def _remove(self, group: GroupFacts | None) -> None:
        if group is None:
            return
        irregular = {**self.summary.irregular}
        if irregular.pop(group.leader, None) is not None:
            self.summary = replace(self.summary, irregular=irregular)
        elif group.index is not None:
            self.summary = _remove_group(self.summary, group.index)

    def _exceeds_revision_limit(self, group: GroupFacts) -> bool:
        """Return whether the group has a new revision after the maximum number of revisions was reached."""
        known = self.summary
        pairs = [(known.leaders, group.revision), (known.statefulset_revisions, group.statefulset_revision)]
        pairs += [] if group.workers is None else [(known.workers, group.workers.revision)]
        return any(revision not in bits and len(bits) >= MOST_REVISIONS for bits, revision in pairs)


def index_groups(groups: Iterable[GroupFacts], name: str) -> GroupIndex:
    """Compute the summary of all groups of the LeaderWorkerSet `name`."""
    result = Groups(name)
    for group in groups:
        result.put(group.leader, group)
    return result.summary


def regular_index(group: GroupFacts, name: str, limit: int) -> int | None:
    """Return the group index in the leader name, if it is valid and below the limit."""
    if group.index is None or group.index >= limit or group.leader != f"{name}-{group.group_index}":
        return None
    return group.index


def regular_indexes(groups: Iterable[GroupFacts], name: str, group_summary: GroupIndex) -> int:
    """Return the indexes of regular groups in a summary."""
    limit = group_summary.members.bit_length()
    indexes = (regular_index(group, name, limit) for group in groups if group.leader not in group_summary.irregular)
    return sum(1 << index for index in set(indexes) if index is not None)


def indexes_below(indexes: int, end: int) -> int:
    """Return the indexes below `end`, which can be the API maximum.

    >>> bin(indexes_below(0b10110, 3)), bin(indexes_below(0b10110, 2**31))
    ('0b110', '0b10110')
    """
    return indexes if end >= indexes.bit_length() else indexes & ((1 << max(end, 0)) - 1)


def lower_partition(ready_and_outdated: int, base: int, partition: int, total: int) -> int:
    """Lower the partition to `base`, or to the index after the highest group that is ready but outdated."""
    top = min(partition, total - 1)
    highest = max(indexes_below(ready_and_outdated, top + 1).bit_length() - 1, base - 1)
    return highest + 1 if highest < top else partition


def shortest_prefix(indexes: int, count: int) -> int:
    """Return the number of lowest bits of a set that contain `count` members."""
    lengths = range(indexes.bit_length() + 1)
    return bisect_left(lengths, count, key=lambda end: indexes_below(indexes, end).bit_count())


def descending_indexes(indexes: int) -> Iterator[int]:
    """Yield the indexes in a set in descending order.

    >>> list(descending_indexes(0b10110))
    [4, 2, 1]
    """
    while indexes:
        index = indexes.bit_length() - 1
        yield index
        indexes ^= 1 << index


def _without_bits(revisions: Mapping[str, int], others: int) -> dict[str, int]:
    return {revision: kept for revision, indexes in revisions.items() if (kept := indexes & others)}


def _add_group(group_summary: GroupIndex, group: GroupFacts, index: int) -> GroupIndex:
    bit, workers, made_from = 1 << index, group.workers, group.statefulset_revision
    return GroupIndex(
        members=group_summary.members | bit,
        leader_ready=group_summary.leader_ready | (bit if group.is_leader_ready else 0),
        with_workers=group_summary.with_workers | (bit if workers is not None else 0),
        workers_ready=group_summary.workers_ready | (bit if workers is not None and workers.is_ready else 0),
        workers_named=group_summary.workers_named
        | (bit if workers and workers.group_index == group.group_index else 0),
        of_one_revision=group_summary.of_one_revision | (bit if workers and workers.revision == group.revision else 0),
        deleting=group_summary.deleting | (bit if group.is_deleting else 0),
        gated=group_summary.gated | (bit if group.is_gated else 0),
        exhausted=group_summary.exhausted | (bit if group.is_exhausted else 0),
        updating=group_summary.updating | (bit if group.target_revision else 0),
        rejected=group_summary.rejected | (bit if group.is_rejected else 0),
        complete=group_summary.complete | (bit if group.result is GroupEnd.COMPLETE else 0),
        late=group_summary.late | (bit if group.result is GroupEnd.LATE else 0),
        alone=group_summary.alone | (bit if group.original_size == 1 else 0),
        larger=group_summary.larger | (bit if group.original_size > 1 else 0),
        leaders={**group_summary.leaders, group.revision: group_summary.leaders.get(group.revision, 0) | bit},
        workers=group_summary.workers
        if workers is None
        else {**group_summary.workers, workers.revision: group_summary.workers.get(workers.revision, 0) | bit},
        statefulset_revisions={
            **group_summary.statefulset_revisions,
            made_from: group_summary.statefulset_revisions.get(made_from, 0) | bit,
        },
        irregular=group_summary.irregular,
    )


def _remove_group(group_summary: GroupIndex, index: int) -> GroupIndex:
    others = ~(1 << index)
    return GroupIndex(
        members=group_summary.members & others,
        leader_ready=group_summary.leader_ready & others,
        with_workers=group_summary.with_workers & others,
        workers_ready=group_summary.workers_ready & others,
        workers_named=group_summary.workers_named & others,
        of_one_revision=group_summary.of_one_revision & others,
        deleting=group_summary.deleting & others,
        gated=group_summary.gated & others,
        exhausted=group_summary.exhausted & others,
        updating=group_summary.updating & others,
        rejected=group_summary.rejected & others,
        complete=group_summary.complete & others,
        late=group_summary.late & others,
        alone=group_summary.alone & others,
        larger=group_summary.larger & others,
        leaders=_without_bits(group_summary.leaders, others),
        workers=_without_bits(group_summary.workers, others),
        statefulset_revisions=_without_bits(group_summary.statefulset_revisions, others),
        irregular=group_summary.irregular,
    )
