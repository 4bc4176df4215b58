"""Tests rollouts with groups that wait for a queue, are terminating, or have no remaining restarts."""

import pytest
from msgspec.structs import replace
from tests.unit.leaderworkerset.core.leaderworkerset.test_rollingupdate import seen, spec

from leaderworkerset.core.leaderworkerset import budget, rollingupdate
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.groupindex import GroupState, States, index_groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase, RolloutStep


def gated(total: int, *indexes: int, updated: frozenset[int] = frozenset()) -> States:
    """Return ready and outdated groups, except groups that wait for a queue."""
    states = {index: GroupState(index not in indexes, index in updated) for index in range(total)}
    return States.from_states(states)._replace(gated=sum(1 << index for index in indexes))


@pytest.mark.parametrize(
    ("waiting", "is_new", "expected"),
    [
        ((), True, 4),
        ((3,), True, 3),
        ((2, 3), True, 2),
        ((1, 3), True, 3),
        ((0, 1, 2, 3), True, 0),
        ((), False, 3),
        ((2, 3), False, 2),
        ((0,), False, 4),
    ],
)
def test_queued_groups_are_released_first(waiting: tuple[int, ...], is_new: bool, expected: int) -> None:
    """The new template releases queued groups, before old pods exist without quota (R-KQ-61)."""
    limits = budget.read(spec(4))

    step = rollingupdate.next_step(limits, StatefulSetProgress(4, 4, "4"), gated(4, *waiting), is_new_revision=is_new)

    assert step.partition == expected


def test_running_groups_wait_for_released_groups_in_the_queue() -> None:
    """`maxUnavailable` applies regardless of the reason for the unavailability (R-KQ-61)."""
    limits = budget.read(spec(4))
    waiting = gated(4, 2, 3, updated=frozenset({2, 3}))

    assert rollingupdate.next_step(limits, StatefulSetProgress(4, 2, "4"), waiting).partition == 2
    assert (
        rollingupdate.next_step(limits, StatefulSetProgress(4, 2, "4"), gated(4, updated=frozenset({2, 3}))).partition
        == 1
    )


def test_partition_of_the_user_holds_queued_groups() -> None:
    limits = budget.read(spec(4, partition=3))

    assert (
        rollingupdate.next_step(
            limits, StatefulSetProgress(4, 4, "4"), gated(4, 1, 2, 3), is_new_revision=True
        ).partition
        == 3
    )


def test_differs_from_upstream_terminating_group_is_not_ready() -> None:
    """A group is not ready while its leader is terminating.

    If an update is reverted while the leader is terminating, no other group is replaced.
    """
    workers = Workers(is_ready=True, revision="old", group_index="0")
    staying = GroupFacts(
        leader="web-0", group_index="0", index=0, is_leader_ready=True, revision="old", workers=workers
    )
    ending = replace(staying, is_deleting=True)
    new_leader = replace(staying, revision="new")

    ready = [index_groups([one], "web").states(2, "new").ready for one in (staying, ending, new_leader)]

    assert ready == [1, 0, 0]


@pytest.mark.parametrize(
    ("letters", "expected"),
    [("NooO", 4), ("NoOO", 3), ("NOOO", 2), ("NooN", 1), ("Nooo", 2)],
)
def test_differs_from_upstream_unready_replaced_groups_count(letters: str, expected: int) -> None:
    """Unready groups that an update has already replaced count as unavailable.

    Therefore, a revert of the update does not replace the last ready group (ADR 10).
    """
    step = rollingupdate.next_step(budget.read(spec(3, 1, 1)), StatefulSetProgress(4, 4, "3"), seen(letters))

    assert step.partition == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (RolloutStep(RolloutCase.ROLLING, 1, 3), RolloutStep(RolloutCase.ROLLING, 2, 4)),
        (RolloutStep(RolloutCase.ROLLING, 3, 5), RolloutStep(RolloutCase.ROLLING, 3, 5)),
        (RolloutStep(RolloutCase.REPLICAS_EDITED, 1, 3), RolloutStep(RolloutCase.REPLICAS_EDITED, 1, 3)),
        (RolloutStep(RolloutCase.NEW_REVISION, 4, 4), RolloutStep(RolloutCase.NEW_REVISION, 4, 4)),
    ],
)
def test_differs_from_upstream_step_waits_for_the_previous_one(step: RolloutStep, expected: RolloutStep) -> None:
    """A rollout step starts only after the StatefulSet controller has observed the previous step.

    Changes by users take effect immediately (ADR 10).
    """
    assert rollingupdate.hold_step(step, StatefulSetProgress(4, 2, "4")) == expected


@pytest.mark.parametrize(
    ("exhausted", "states", "partition", "expected"),
    [(0b010, "OoO", 3, 2), (0b010, "Oon", 2, 2), (0b010, "OoN", 2, 1), (0b001, "oOO", 3, 2), (0b011, "ooO", 3, 2)],
)
def test_exhausted_groups_are_skipped(exhausted: int, states: str, partition: int, expected: int) -> None:
    """Exhausted groups need the new template. Only one other group is replaced at a time (N-RB-8, N-AT-21)."""
    limits = Budget(replicas=3, partition=0, unavailable=1, surge=0)
    now = seen(states)._replace(exhausted=exhausted)

    assert rollingupdate.next_step(limits, StatefulSetProgress(3, partition, "3"), now).partition == expected
