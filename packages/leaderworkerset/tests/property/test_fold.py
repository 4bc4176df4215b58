"""Tests that an incrementally updated fold of groups equals a new fold and the counts of a simple loop."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from testkit.examples import examples
from tests import builders

from leaderworkerset.api import leaderworkerset
from leaderworkerset.core.leaderworkerset import status
from leaderworkerset.core.leaderworkerset.groupindex import (
    FEWEST,
    MOST_REVISIONS,
    GroupIndex,
    Groups,
    GroupState,
    States,
    index_groups,
)
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers

REVISIONS = st.sampled_from(["new", "old", ""])
INDEXES = st.sampled_from(["0", "1", "2", "3", "4", "007", str(FEWEST), str(2**31)])


@st.composite
def groups(draw: st.DrawFn) -> GroupFacts:
    label = draw(INDEXES)
    leader = f"web-{draw(st.sampled_from([label, label, '1']))}"
    workers = st.builds(Workers, is_ready=st.booleans(), revision=REVISIONS, group_index=st.sampled_from([label, "9"]))
    return GroupFacts(
        leader=leader,
        group_index=label,
        index=int(label),
        is_leader_ready=draw(st.booleans()),
        revision=draw(REVISIONS),
        workers=draw(st.none() | workers),
        is_deleting=draw(st.booleans()),
        statefulset_revision=draw(REVISIONS),
        is_gated=draw(st.booleans()),
    )


CHANGES = st.lists(st.tuples(st.booleans(), groups()), max_size=20)
"""The changed groups, and whether each is deleted."""


def after(changes: list[tuple[bool, GroupFacts]]) -> Groups:
    """Return the groups after the changes."""
    found = Groups("web")
    for goes, group in changes:
        found.put(group.leader, None if goes else group)
    return found


@given(CHANGES)
@settings(max_examples=examples(30))
def test_incremental_fold_equals_a_new_fold(changes: list[tuple[bool, GroupFacts]]) -> None:
    found = after(changes)

    assert found.summary == index_groups(found.by_leader.values(), "web")


@given(CHANGES)
@settings(max_examples=examples(30))
def test_fold_is_empty_when_all_groups_are_gone(changes: list[tuple[bool, GroupFacts]]) -> None:
    found = after(changes)
    for leader in [*found.by_leader]:
        found.put(leader, None)

    assert found.summary == GroupIndex()


@given(CHANGES, st.integers(1, 2), st.integers(0, 6), st.integers(0, 6))
@settings(max_examples=examples(30))
def test_fold_counts_groups_like_a_loop(
    changes: list[tuple[bool, GroupFacts]], size: int, replicas: int, partition: int
) -> None:
    """The fold counts groups as a loop does (R-STAT-5 to R-STAT-7)."""
    lws = leaderworkerset.decode(
        builders.leaderworkerset_object(replicas=replicas, size=size, rollout={"partition": partition})
    )
    found = after(changes)
    group_summary, living = found.summary, found.by_leader
    whole = [one for one in living.values() if size == 1 or one.workers is not None]
    rolled = [one for one in whole if one.index is not None and partition <= one.index < replicas]

    assert status.count(lws, group_summary, "new") == status.Counts(
        ready=sum(builders.is_group_ready(one, size) for one in whole),
        updated=sum(is_updated(one, size) for one in whole),
        desired_ready=sum(builders.is_group_ready(one, size) and int(one.group_index) < replicas for one in whole),
        rolled=len(rolled),
        rolled_updated=sum(is_updated(one, size) for one in rolled),
        rolled_done=sum(is_updated(one, size) and builders.is_group_ready(one, size) for one in rolled),
    )


@given(CHANGES, st.integers(1, 2))
@settings(max_examples=examples(30))
def test_rollout_matches_groups_by_their_index(changes: list[tuple[bool, GroupFacts]], size: int) -> None:
    """A rollout compares groups by their index (R-ROLL-8)."""
    found = after(changes)
    group_summary, living = found.summary, found.by_leader
    named = {
        one.index: one
        for one in living.values()
        if one.index is not None
        and one.index < FEWEST
        and one.leader == f"web-{one.group_index}"
        and (size == 1 or (one.workers is not None and one.workers.group_index == one.group_index))
    }

    expected = {index: GroupState(stays_ready(one, size), is_updated(one, size)) for index, one in named.items()}
    regular = {one.index: one for one in living.values() if fold_index(one) is not None}
    gated = sum(1 << index for index, one in regular.items() if index is not None and one.is_gated)
    counted = States.from_states(expected)._replace(gated=gated)
    assert group_summary.states(size, "new") == counted


def is_updated(group: GroupFacts, size: int) -> bool:
    """Return whether leader and workers have the revision `new` (R-STAT-6)."""
    return group.revision == "new" and (size == 1 or (group.workers is not None and group.workers.revision == "new"))


def stays_ready(group: GroupFacts, size: int) -> bool:
    """Return whether a group is ready and not being deleted."""
    is_whole = size == 1 or (group.workers is not None and group.workers.revision == group.revision)
    return builders.is_group_ready(group, size) and is_whole and not group.is_deleting


def fold_index(group: GroupFacts) -> int | None:
    """Return the index of a group, if the names of its objects match the index."""
    is_regular = group.index is not None and group.index < FEWEST and group.leader == f"web-{group.group_index}"
    return group.index if is_regular else None


def test_earlier_fold_stays_unchanged() -> None:
    found, odd = Groups("web"), replace(alone(0), leader="odd")
    found.put("web-0", alone(0))
    found.put("odd", odd)
    before = found.summary

    found.put("web-0", replace(alone(0), revision="new"))
    found.put("odd", None)

    assert before == index_groups([alone(0), odd], "web")


def alone(index: int, revision: str = "old") -> GroupFacts:
    """Return a group with one pod."""
    return GroupFacts(f"web-{index}", str(index), index, is_leader_ready=True, revision=revision, workers=None)


@given(st.permutations(range(600)), st.integers(0, 600))
@settings(max_examples=examples(5), deadline=None)
def test_thousands_of_groups_are_regular_in_any_order(order: list[int], kept: int) -> None:
    """The indexes differ by 16, so the last groups become regular only after other groups are added."""
    found = Groups("web")
    for number in order:
        found.put(f"web-{number * 16}", alone(number * 16))
    assert found.summary == index_groups(map(alone, range(0, 9600, 16)), "web")
    assert not found.summary.irregular

    for number in order[kept:]:
        found.put(f"web-{number * 16}", None)
    group_summary = found.summary
    assert group_summary.members.bit_count() + len(group_summary.irregular) == kept


def test_excessive_indexes_and_revisions_take_no_bits() -> None:
    """Users can write labels. One bit for each index up to the highest label value would use all memory."""
    forged = [alone(int("9" * 62)), alone(1_999_999)]
    many = [alone(index, f"r{index}") for index in range(1000)]

    group_summary = index_groups([*forged, *many], "web")

    assert {*forged, *many[MOST_REVISIONS:]} == {*group_summary.irregular.values()}
    assert group_summary.members == (1 << MOST_REVISIONS) - 1
    counts = status.count(leaderworkerset.decode(builders.leaderworkerset_object(size=1)), group_summary, "r0")
    assert counts.ready == len(forged) + len(many)
