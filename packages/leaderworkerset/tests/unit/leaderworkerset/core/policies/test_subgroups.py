"""Tests the calculation of subgroups (R-ADM-12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderworkerset.core.policies.identity import group_hash
from leaderworkerset.core.policies.subgroups import subgroup_index


@pytest.mark.parametrize(
    ("size", "subgroup_size", "worker", "index"),
    [(4, 2, 2, 1), (5, 2, 2, 0), (3, 1, 1, 1), (3, 1, 2, 2)],
)
def test_subgroup_index_equals_the_recorded_one(size: int, subgroup_size: int, worker: int, index: int) -> None:
    assert subgroup_index(size, subgroup_size, worker) == index


@pytest.mark.parametrize(
    ("size", "subgroup_size", "layout"),
    [(4, 2, [0, 1, 1]), (5, 2, [0, 0, 1, 1]), (3, 1, [1, 2])],
)
def test_subgroup_layouts_include_or_exclude_the_leader(size: int, subgroup_size: int, layout: list[int]) -> None:
    """The leader is in subgroup 0 or in no subgroup. Q-15 applies to subgroups of one pod."""
    assert [subgroup_index(size, subgroup_size, worker) for worker in range(1, size)] == layout


@given(st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_subgroups_have_equal_sizes(subgroup_size: int, count: int, leader_is_extra: bool) -> None:
    """Each subgroup has the configured number of members. An extra leader enlarges the first subgroup by one."""
    size = subgroup_size * count + (1 if leader_is_extra and subgroup_size > 1 else 0)
    members = [0] + [subgroup_index(size, subgroup_size, worker) for worker in range(1, size)]
    counts = [members.count(index) for index in range(count)]
    extra = size - subgroup_size * count
    assert counts == [subgroup_size + extra] + [subgroup_size] * (count - 1)


def test_group_hash_equals_the_recorded_one() -> None:
    """The group hash equals the recorded hash (R-ADM-6)."""
    assert group_hash("default", "test-sample") == "95e88034e460983f51a9952fe128729fbc0663b5"
