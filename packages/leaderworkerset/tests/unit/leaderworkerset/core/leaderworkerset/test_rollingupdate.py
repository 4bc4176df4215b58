"""Tests rolling updates with the recorded steps and the calculations of the contract."""

import json
from pathlib import Path
from typing import Any

import pytest

from leaderworkerset.api.leaderworkerset import LeaderWorkerSetSpec, RollingUpdateConfiguration, RolloutStrategy
from leaderworkerset.core.leaderworkerset import budget, rollingupdate
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.groupindex import GroupState, States, index_groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from leaderworkerset.core.leaderworkerset.rollingupdate import RolloutCase, RolloutStep

TRACES = json.loads(Path("packages/leaderworkerset/tests/vectors/lws-rollout-traces.json").read_text())

STATES = {
    "N": GroupState(is_ready=True, is_updated=True),
    "O": GroupState(is_ready=True, is_updated=False),
    "n": GroupState(is_ready=False, is_updated=True),
    "o": GroupState(is_ready=False, is_updated=False),
}

STALLED = {("W-26", 2), ("W-26", 3)}
"""The steps at which the Go controller stalls permanently. See `test_differs_from_upstream_…` below."""

GIVEN_AWAY = {("W-11", 1), ("W-19", 6)}
"""The steps at which the Go controller immediately updates surge groups.

See `test_differs_from_upstream_…` below.
"""


def spec(replicas: int, unavailable: int | str = 1, surge: int | str = 0, partition: int = 0) -> LeaderWorkerSetSpec:
    config = RollingUpdateConfiguration(partition=partition, max_unavailable=unavailable, max_surge=surge)
    return LeaderWorkerSetSpec(replicas=replicas, rollout_strategy=RolloutStrategy(rolling_update_configuration=config))


def seen(states: str) -> States:
    """Return the states of the groups, starting with group 0. A dot represents a missing group."""
    return States.from_states({index: STATES[letter] for index, letter in enumerate(states) if letter != "."})


def recorded_step(row: dict[str, Any]) -> RolloutStep:
    limits = budget.read(spec(row["R"], row["maxUnavailable"], row["maxSurge"], row["userPartition"]))
    before = row["sts"]
    current = before and StatefulSetProgress(before["replicas"], before["partition"], str(before["annotation"]))
    return rollingupdate.next_step(limits, current, seen(row["states"]), is_new_revision=row["newRevision"])


def test_every_recorded_step_is_reproduced() -> None:
    """Every recorded step is reproduced (R-ROLL-1 to R-ROLL-11, Appendix A)."""
    others = {
        (row["example"], row["step"])
        for row in TRACES
        if recorded_step(row) != RolloutStep(RolloutCase(row["case"]), row["partition"], row["replicas"])
    }
    assert others == STALLED | GIVEN_AWAY


@pytest.mark.parametrize(
    ("states", "partition"),
    [("Ooo", 2), ("OoO", 3), ("NoO", 3), ("OOo", 2), ("OOO", 2)],
    ids=["it is not ready either", "one on its way", "taken back", "the surge group itself", "at rest"],
)
def test_differs_from_upstream_new_update_keeps_surge_groups(states: str, partition: int) -> None:
    """A new update does not remove surge groups that are needed for availability (unlike R-ROLL-10)."""
    limits = Budget(replicas=2, partition=0, unavailable=0, surge=1)

    held = rollingupdate.next_step(limits, StatefulSetProgress(3, 1, "2"), seen(states), is_new_revision=True)
    assert held == RolloutStep(RolloutCase.NEW_REVISION, 3, 3)
    assert rollingupdate.next_step(limits, StatefulSetProgress(3, 3, "2"), seen(states)) == RolloutStep(
        RolloutCase.ROLLING, partition, 3
    )


def test_surge_groups_beyond_the_burst_are_removed() -> None:
    """The number of replicas and the template change together (W-11)."""
    limits = Budget(replicas=3, partition=0, unavailable=1, surge=2)

    assert rollingupdate.next_step(
        limits, StatefulSetProgress(6, 0, "6"), seen("OOOOOO"), is_new_revision=True
    ) == RolloutStep(RolloutCase.NEW_REVISION, 5, 5)


@pytest.mark.parametrize(
    ("states", "partition", "expected"),
    [
        pytest.param(
            "OOONnnnNN", 3, RolloutStep(RolloutCase.ROLLING, 1, 8), id="one of two: index 0 and two more stay available"
        ),
        pytest.param(
            "ONnnnnnNN", 1, RolloutStep(RolloutCase.ROLLING, 1, 8), id="the partition stays, and so does one of them"
        ),
        pytest.param("OOONNnnNN", 3, RolloutStep(RolloutCase.ROLLING, 1, 6), id="enough others are available"),
        pytest.param("OOONnNNnn", 3, RolloutStep(RolloutCase.ROLLING, 3, 7), id="the groups given back are not ready"),
        pytest.param(
            "NnnnnnnNN", 0, RolloutStep(RolloutCase.ROLLING, 0, 9), id="at the bound no ready group is given back"
        ),
    ],
)
def test_differs_from_upstream_needed_surge_groups_are_kept(states: str, partition: int, expected: RolloutStep) -> None:
    """Ready surge groups are kept while they are needed, for example if 3 of 5 groups must be available.

    The Go controller deletes surge groups by index (R-ROLL-3).
    """
    limits = Budget(replicas=5, partition=0, unavailable=2, surge=4)

    assert rollingupdate.next_step(limits, StatefulSetProgress(9, partition, "5"), seen(states)) == expected


@pytest.mark.parametrize(
    ("states", "partition", "expected"),
    [
        ("OOON", 3, RolloutStep(RolloutCase.ROLLING, 1, 3)),
        ("OnnN", 1, RolloutStep(RolloutCase.ROLLING, 1, 3)),
        ("nnnN", 0, RolloutStep(RolloutCase.ROLLING, 0, 4)),
    ],
    ids=["two of three go", "one is available", "none is, but the surge group"],
)
def test_removed_surge_keeps_groups_that_are_needed(states: str, partition: int, expected: RolloutStep) -> None:
    """In a simulation, maxSurge was set to 0, and all three were deleted with the replacement of one group."""
    limits = Budget(replicas=3, partition=0, unavailable=2, surge=0)

    assert rollingupdate.next_step(limits, StatefulSetProgress(4, partition, "3"), seen(states)) == expected


def test_differs_from_upstream_zero_percentages_roll_one_group() -> None:
    """If maxUnavailable is 25% of 2 groups, one group is replaced at a time.

    The Go controller rounds the limit down to 0, and the rollout stalls permanently (Q-28, W-26).
    """
    limits = budget.read(spec(2, "25%"))

    assert limits == Budget(replicas=2, partition=0, unavailable=1, surge=0)
    assert rollingupdate.next_step(limits, StatefulSetProgress(2, 2, "2"), seen("OO")) == RolloutStep(
        RolloutCase.ROLLING, 1, 2
    )
    assert rollingupdate.next_step(limits, StatefulSetProgress(2, 1, "2"), seen("ON")) == RolloutStep(
        RolloutCase.ROLLING, 0, 2
    )


def test_zero_unavailable_is_kept_with_a_surge() -> None:
    """maxUnavailable 0 must be respected, which is possible because of the surge (R-ROLL-1)."""
    assert budget.read(spec(4, 0, 1)).unavailable == 0


@pytest.mark.parametrize(
    ("replicas", "unavailable", "surge", "expected"),
    [(10, "25%", "30%", (2, 3)), (4, 10, 10, (10, 4)), (2, 0, "10%", (0, 1)), (0, "25%", "25%", (1, 0))],
)
def test_percentages_refer_to_replicas_and_surge_is_limited(
    replicas: int, unavailable: int | str, surge: int | str, expected: tuple[int, int]
) -> None:
    """Percentages refer to replicas, and the surge is limited (R-ROLL-1)."""
    limits = budget.read(spec(replicas, unavailable, surge))

    assert (limits.unavailable, limits.surge) == expected


def test_invalid_budget_value_raises_an_error() -> None:
    """An invalid budget value raises an error (R-ROLL-1)."""
    with pytest.raises(ValueError, match="neither a number nor a percentage"):
        budget.read(spec(2, "many"))


@pytest.mark.parametrize(
    ("unavailable", "surge", "replicas", "expected"),
    [(1, 0, 4, 1), (2, 1, 1, 3), (0, 2, 1, 1), (0, 0, 0, 1), (1, "50%", 2, 2)],
)
def test_statefulset_budget_includes_the_surge(
    unavailable: int, surge: int | str, replicas: int, expected: int
) -> None:
    """A StatefulSet budget includes the surge (R-LSTS-3)."""
    assert budget.read(spec(replicas, unavailable, surge)).max_unavailable == expected


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "unready", "expected"),
    [(1, 1, 0, 1, 2), (4, 2, 1, 2, 5), (2, 2, 1, 2, 3), (1, 1, 0, 0, 1), (1, 1, 1, 1, 1), (3, 0, 0, 1, 3)],
)
def test_surge_groups_are_kept_for_unready_groups(
    replicas: int, surge: int, unavailable: int, unready: int, expected: int
) -> None:
    """Surge groups remain while groups are unready (R-ROLL-3, the vectors of 5.3)."""
    limits = Budget(replicas=replicas, partition=0, unavailable=unavailable, surge=surge)

    assert limits.replicas_needed(unready) == expected


@pytest.mark.parametrize(
    ("config", "is_new", "expected"),
    [((3, 0, 1), False, (0, 3)), ((3, 0, 1), True, (2, 3)), ((2, 1, 2), True, (2, 3))],
)
def test_steps_equal_the_parameter_vectors(
    config: tuple[int, int, int], *, is_new: bool, expected: tuple[int, int]
) -> None:
    """The steps equal the test vectors of section 5.3."""
    step = rollingupdate.next_step(
        budget.read(spec(*config)), StatefulSetProgress(2, 0, "2"), seen("OO"), is_new_revision=is_new
    )

    assert (step.partition, step.replicas) == expected


def test_missing_replicas_annotation_counts_as_edited() -> None:
    """The Go controller fails until a user corrects the object.

    This controller corrects it on the next write (R-ROLL-4).
    """
    step = rollingupdate.next_step(budget.read(spec(4)), StatefulSetProgress(4, 2, ""), seen("OONN"))

    assert step == RolloutStep(RolloutCase.REPLICAS_EDITED, 2, 4)


@pytest.mark.parametrize(("states", "replicas"), [("OOO", 4), ("OOON", 4)])
def test_partition_beyond_the_replicas_keeps_the_surge(states: str, replicas: int) -> None:
    """With a partition above the replicas, the surge remains (Q-35, R-ROLL-2, W-21)."""
    limits = budget.Budget(replicas=3, partition=5, unavailable=0, surge=1)

    step = rollingupdate.next_step(limits, StatefulSetProgress(4, 5, "3"), seen(states))

    assert (step.partition, step.replicas) == (5, replicas)


def group(index: int, *, name: str = "web", workers_index: str | None = None) -> GroupFacts:
    workers = Workers(is_ready=True, revision="new", group_index=workers_index or str(index))
    return GroupFacts(
        leader=f"{name}-{index}",
        group_index=str(index),
        index=index,
        is_leader_ready=True,
        revision="new",
        workers=workers,
    )


def test_groups_are_matched_by_names_and_labels() -> None:
    """Leaders with other names or labels are not counted (R-ROLL-8)."""
    found = [group(0), group(1, name="other"), group(2, workers_index="9"), group(3)]

    states = index_groups(found, "web").states(2, "new")

    assert states == seen("N..N.")


def test_workers_of_a_group_of_one_are_ignored() -> None:
    """If the leader does not have a size, the current size of the set is used (R-ROLL-8, Q-12)."""
    lacking = GroupFacts("web-0", "0", 0, is_leader_ready=True, revision="old", workers=None)

    assert index_groups([lacking], "web").states(1, "new") == seen("O")
    assert index_groups([lacking], "web").states(2, "new") == seen(".")


@pytest.mark.parametrize(
    ("states", "partition"),
    [("N..O", 4), ("N.NO", 3), ("NN.O", 2), ("N.oo", 2)],
    ids=["two on their way", "one below", "one above", "nothing to lose"],
)
def test_differs_from_upstream_pending_groups_always_count(states: str, partition: int) -> None:
    """Missing groups count as unavailable, regardless of their index (unlike R-ROLL-7)."""
    limits = Budget(replicas=3, partition=0, unavailable=1, surge=1)

    step = rollingupdate.next_step(limits, StatefulSetProgress(4, 4, "3"), seen(states))

    assert step.partition == partition


@pytest.mark.parametrize(
    ("own_size", "size", "has_workers", "expected"),
    [(1, 3, False, "O"), (3, 1, False, "."), (3, 1, True, "O"), (3, 3, True, "O"), (3, 3, False, ".")],
)
def test_differs_from_upstream_group_has_its_original_size(
    own_size: int, size: int, *, has_workers: bool, expected: str
) -> None:
    """The original size of a group determines whether the group is ready (unlike Q-12).

    If the size changes from 1 to 3, existing groups remain ready (ADR 10).
    """
    workers = Workers(is_ready=True, revision="old", group_index="0") if has_workers else None
    made = GroupFacts("web-0", "0", 0, is_leader_ready=True, revision="old", workers=workers, original_size=own_size)
    group_summary = index_groups([made], "web")
    shown = {
        index: GroupState(bool(group_summary.available_groups(size) >> index & 1), is_updated=False)
        for index in range(1)
    }

    assert group_summary.states(size, "new").ready == seen(expected).ready
    assert shown[0].is_ready == (expected == "O")


def test_index_that_is_not_a_number_is_skipped() -> None:
    """A non-numeric index is skipped (R-ROLL-8)."""
    odd = GroupFacts("web-x", "x", None, is_leader_ready=True, revision="new", workers=None)

    assert index_groups([odd], "web").states(1, "new") == seen(".")


BROKEN = {
    "the only one of the budget": (spec(3), [("oOO", True, (3, 3)), ("oOO", False, (3, 3)), ("NOO", False, (2, 3)), ("NOn", False, (2, 3))]),
    "the last ready group": (spec(2), [("oO", True, (2, 2)), ("oO", False, (2, 2)), ("nO", False, (2, 2)), ("NO", False, (1, 2))]),
    "no group may be unavailable": (spec(3, 0, 1), [("oOO", True, (3, 4)), ("oOO.", False, (3, 4)), ("oOON", False, (3, 4)), ("NOON", False, (2, 4))]),
    "lost in the middle": (spec(5), [("OOOOO", True, (5, 5)), ("OOOOO", False, (4, 5)), ("OooON", False, (4, 5)), ("ONNON", False, (3, 5))]),
    "missing ones below": (spec(4), [("oOOO", True, (4, 4)), ("o.OO", False, (4, 4)), ("ooOO", False, (4, 4))]),
    "the highest ones cost nothing": (spec(3), [("OOo", True, (3, 3)), ("OOo", False, (2, 3))]),
    "as upstream within the budget": (spec(4, 2), [("OoOO", True, (4, 4)), ("OoOO", False, (3, 4)), ("OoON", False, (1, 4)), ("OoNN", False, (0, 4))]),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "steps"), BROKEN.values(), ids=BROKEN)
def test_partition_keeps_ready_groups_when_others_are_broken(
    wanted: LeaderWorkerSetSpec, steps: list[tuple[str, bool, tuple[int, int]]]
) -> None:
    """Broken groups are replaced regardless of the partition (R-ROLL-7, docs/adr/0030)."""
    limits = budget.read(wanted)
    current = StatefulSetProgress(wanted.replicas, limits.partition, str(wanted.replicas))
    for letters, is_new, expected in steps:
        step = rollingupdate.next_step(limits, current, seen(letters), is_new_revision=is_new)
        assert (step.partition, step.replicas) == expected, letters
        current = StatefulSetProgress(step.replicas, step.partition, str(wanted.replicas))
