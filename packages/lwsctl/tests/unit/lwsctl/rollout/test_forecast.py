"""Tests that forecast rollouts respect the budget, complete, and use the steps of the controller."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.outdatedleaders import StatefulSetProgress
from lwsctl.rollout import forecast
from lwsctl.rollout.forecast import Forecast, RolloutState


def foreseen(
    replicas: int,
    unavailable: int,
    surge: int = 0,
    *,
    partition: int = 0,
    before: int | None = None,
    rolls: bool = True,
) -> Forecast:
    """Return the forecast rollout of ready groups."""
    there = replicas if before is None else before
    everything = (1 << there) - 1
    world = RolloutState(
        StatefulSetProgress(there, 0, str(there)),
        members=everything,
        ready=everything,
        updated=0 if rolls else everything,
    )
    limits = Budget(replicas=replicas, partition=partition, unavailable=unavailable, surge=surge)
    return forecast.forecast(limits, world, is_new_revision=rolls)


def groups(found: Forecast) -> list[tuple[int, ...]]:
    return [wave.groups for wave in found.waves]


def test_rollout_updates_one_group_after_the_other() -> None:
    found = foreseen(3, 1)
    assert groups(found) == [(2,), (1,), (0,)]
    assert (found.max_surge, found.min_available, found.held_groups, found.is_stuck) == (0, 2, 0, False)


def test_surge_groups_are_created_first_and_deleted_last() -> None:
    found = foreseen(4, 0, 1)
    assert groups(found) == [(4,), (3,), (2,), (1,), (0,), ()]
    assert (found.max_surge, found.min_available) == (1, 4)


def test_groups_below_the_partition_are_held() -> None:
    found = foreseen(4, 1, partition=2)
    assert groups(found) == [(3,), (2,)]
    assert (found.held_groups, found.is_stuck) == (2, False)


def test_added_groups_have_the_new_revision_immediately() -> None:
    assert groups(foreseen(6, 1, before=4)) == [(5, 4), (3,), (2,), (1,), (0,)]


def test_removed_groups_are_not_updated() -> None:
    assert groups(foreseen(2, 1, before=4)) == [(1,), (0,)]


def test_scaling_without_a_new_revision_updates_no_group() -> None:
    assert groups(foreseen(3, 1, before=2, rolls=False)) == [(2,)]
    assert groups(foreseen(1, 1, before=2, rolls=False)) == [()]
    assert groups(foreseen(2, 1, rolls=False)) == []


def test_new_set_creates_all_its_groups() -> None:
    assert groups(foreseen(3, 1, before=0, rolls=False)) == [(2, 1, 0)]


def test_current_rollout_continues_from_its_position() -> None:
    world = RolloutState(StatefulSetProgress(4, 2, "4"), members=0b1111, ready=0b0111, updated=0b1100)
    limits = Budget(replicas=4, partition=0, unavailable=1, surge=0)
    found = forecast.forecast(limits, world, is_new_revision=False)
    assert groups(found)[-2:] == [(1,), (0,)]
    assert not found.is_stuck


def test_reverted_update_rolls_only_the_updated_groups() -> None:
    world = RolloutState(StatefulSetProgress(4, 3, "4"), members=0b1111, ready=0b0111, updated=0b0111)
    limits = Budget(replicas=4, partition=0, unavailable=1, surge=0)
    found = forecast.forecast(limits, world, is_new_revision=True)
    assert (groups(found), found.min_available, found.is_stuck) == ([(3,)], 3, False)


@given(
    replicas=st.integers(1, 12), reached=st.integers(0, 11), broken=st.integers(0, 11), unavailable=st.integers(1, 5)
)
def test_reverted_update_creates_no_group_twice(replicas: int, reached: int, broken: int, unavailable: int) -> None:
    """The update reached the highest groups, and the last of them are not ready. Others have the target revision."""
    reached, everything = min(reached, replicas - 1), (1 << replicas) - 1
    kept = (1 << (replicas - reached)) - 1
    ready = everything & ~(((1 << min(broken, reached)) - 1) << (replicas - reached))
    world = RolloutState(
        StatefulSetProgress(replicas, replicas - reached, str(replicas)), members=everything, ready=ready, updated=kept
    )
    limits = Budget(replicas=replicas, partition=0, unavailable=unavailable, surge=0)
    found = forecast.forecast(limits, world, is_new_revision=True)
    made = [group for wave in found.waves for group in wave.groups]
    assert sorted(made) == list(range(replicas - reached, replicas))
    assert not found.is_stuck


def test_unready_groups_are_updated_first_at_no_cost() -> None:
    world = RolloutState(StatefulSetProgress(3, 0, "3"), members=0b111, ready=0b011)
    limits = Budget(replicas=3, partition=0, unavailable=1, surge=0)
    assert groups(forecast.forecast(limits, world, is_new_revision=True))[0] == (2,)


def test_too_many_groups_are_rejected() -> None:
    with pytest.raises(forecast.TooLargeError, match="forecasts are limited to 10000 groups"):
        foreseen(10_001, 1)


def test_forecast_of_no_groups_is_empty() -> None:
    found = foreseen(0, 1)
    assert (found.waves, found.max_surge, found.min_available, found.is_stuck) == ((), 0, None, False)


@given(
    replicas=st.integers(0, 12),
    before=st.integers(0, 12),
    unavailable=st.integers(0, 4),
    surge=st.integers(0, 4),
    partition=st.integers(0, 14),
    rolls=st.booleans(),
)
def test_every_rollout_completes_within_its_bounds(
    replicas: int, before: int, unavailable: int, surge: int, partition: int, *, rolls: bool
) -> None:
    surge = min(surge, replicas)
    unavailable = max(unavailable, 0 if surge else 1)
    found = foreseen(replicas, unavailable, surge, partition=partition, before=before, rolls=rolls)
    assert not found.is_stuck
    assert found.max_surge <= max(surge, before - replicas)
    if before >= replicas and found.min_available is not None:
        assert found.min_available >= replicas - unavailable
