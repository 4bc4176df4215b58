"""Tests from which old revisions groups are removed (R-DS-62, R-DS-63)."""

import pytest

from leaderworkerset.core.disaggregatedset.slicerollout import drain

P, D, E = "prefill", "decode", "encode"


def pair(prefill: int, decode: int) -> dict[str, int]:
    return {P: prefill, D: decode}


@pytest.mark.parametrize(
    ("revisions", "budget", "kept"),
    [
        ([pair(4, 4)], pair(2, 2), [pair(2, 2)]),
        ([pair(2, 2), pair(2, 2)], pair(2, 2), [pair(0, 0), pair(2, 2)]),
        ([pair(3, 2)], pair(1, 2), [pair(0, 0)]),
        ([pair(6, 6)], pair(2, 2), [pair(4, 4)]),
        ([pair(2, 2), pair(2, 2), pair(2, 2)], pair(4, 4), [pair(0, 0), pair(0, 0), pair(2, 2)]),
        ([pair(3, 3), pair(1, 2)], pair(1, 1), [pair(2, 2), pair(1, 2)]),
        ([pair(3, 3), pair(1, 1)], pair(2, 2), [pair(1, 1), pair(1, 1)]),
        ([pair(4, 4)], {P: 0, D: 1, E: 0}, [pair(4, 3)]),
        ([pair(4, 4)], {P: 1, D: 1, E: 0}, [pair(3, 3)]),
        ([pair(4, 4)], {P: 4, D: 0, E: 0}, [pair(0, 0)]),
        ([pair(4, 4)], pair(-1, 1), [pair(4, 3)]),
    ],
)
def test_drain_follows_the_examples_of_the_contract(
    revisions: list[dict[str, int]], budget: dict[str, int], kept: list[dict[str, int]]
) -> None:
    """The newest revision is the first one (R-DS-63)."""
    assert drain(revisions, budget, {}) == kept


def test_revision_beyond_the_budget_drains_no_further() -> None:
    """The Go controller would remove a second group of the older revision (Q-4)."""
    assert drain([pair(3, 2), pair(5, 5)], pair(1, 2), {}) == [pair(0, 0), pair(5, 5)]


def test_drain_keeps_a_revision_above_the_floor() -> None:
    """Prefill needs its three groups.

    Decode keeps its last group, and a group of an older revision is removed (Q-4).
    """
    assert drain([pair(3, 1), pair(1, 2)], pair(1, 1), pair(1, 1)) == [pair(2, 1), pair(1, 1)]


def test_role_without_groups_limits_no_other_role() -> None:
    """An example is an External role that is scaled to zero (Q-5)."""
    assert drain([pair(4, 0)], pair(1, 0), {}) == [pair(3, 0)]


def test_nothing_is_drained_without_a_budget() -> None:
    assert drain([pair(4, 4)], {}, {}) == [pair(4, 4)]
