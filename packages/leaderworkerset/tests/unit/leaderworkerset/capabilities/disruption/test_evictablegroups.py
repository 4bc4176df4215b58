"""Tests each rule that selects the groups that may be evicted (ADR 22)."""

from datetime import UTC, datetime, timedelta

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace
from testkit.examples import examples
from tests.unit.leaderworkerset.capabilities.disruption.groups import group, opened

from leaderworkerset.capabilities.disruption import evictablegroups
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.capabilities.disruption.groupbudget import ProtectedGroup

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(seconds=60)
BLIND = DisruptionSettings(watches_nodes=False)


def decide(
    *groups: ProtectedGroup,
    limit: int = 1,
    missing: int = 0,
    settings: DisruptionSettings | None = None,
    now: datetime = NOW,
) -> tuple[str, str]:
    """Return the labels of the groups to close and of the groups to open."""
    chosen = settings or DisruptionSettings()
    found = evictablegroups.decide(groups, evictablegroups.Allowance(limit=limit, missing=missing), chosen, now)
    return "".join(one.label for one in found.to_close), "".join(one.label for one in found.to_open)


def test_window_opens_as_many_groups_as_permitted() -> None:
    assert decide(group("0"), group("1"), group("2")) == ("", "0")
    assert decide(group("0"), group("1"), group("2"), limit=2) == ("", "01")
    assert decide(opened("0"), group("1"), group("2")) == ("", "")
    assert decide(group("0"), limit=0) == ("", "")
    assert decide(opened("0"), opened("1")) == ("1", "")
    assert decide(opened("0"), limit=0) == ("0", "")


def test_unavailable_group_uses_the_budget_and_stays_open() -> None:
    assert decide(opened("0", healthy=1), group("1")) == ("", "")
    assert decide(opened("0", present=False), group("1")) == ("", "")
    assert decide(opened("0", disrupted=True), group("1", wanted=True)) == ("", "")
    assert decide(opened("0", healthy=1), opened("1"), limit=2) == ("", "")


def test_failed_closed_group_replaces_an_open_one() -> None:
    """The group that is open is closed first.

    The broken group is opened when no eviction is pending, as it does not serve.
    """
    assert decide(opened("0"), group("1", healthy=1)) == ("0", "")
    assert decide(group("0"), group("1", healthy=1)) == ("", "1")
    assert decide(group("0", healthy=1), group("1", healthy=1)) == ("", "")


def test_missing_groups_use_the_budget() -> None:
    assert decide(opened("0"), missing=1) == ("0", "")
    assert decide(group("0"), missing=1) == ("", "")
    assert decide(group("0"), missing=1, limit=2) == ("", "0")


@pytest.mark.parametrize("unproved", [{"observed": False}, {"disrupted": True}, {"healthy": 1}])
def test_next_group_opens_after_the_closed_one_is_confirmed(unproved: dict[str, bool]) -> None:
    assert decide(group("0", **unproved), group("1", wanted=True)) in {("", ""), ("", "0")}
    assert decide(group("0"), group("1", wanted=True)) == ("", "1")


def test_group_without_a_budget_is_not_opened() -> None:
    bare = replace(group("0"), budget=None)
    assert decide(bare, group("1")) == ("", "")
    assert decide(bare, group("1"), limit=2) == ("", "1")


def new(found: ProtectedGroup, age: float) -> ProtectedGroup:
    """Return the group whose leader has this age in seconds, while a node is cordoned."""
    return replace(found, age=age)


def test_new_open_group_stays_open_while_drains_retry() -> None:
    """`kubectl drain` evicts pods by name, and retries after 5 s, when the pods may run on another node."""
    young = new(opened("0"), 3.0)
    assert decide(young, group("1", wanted=True)) == ("", "")
    assert (
        evictablegroups.decide(
            [young], evictablegroups.Allowance(limit=1, missing=0), DisruptionSettings(), NOW
        ).requeue_after
        == 12.0
    )
    assert decide(new(opened("0"), 15.0), group("1", wanted=True)) == ("0", "")


def test_new_open_group_is_closed_when_others_are_unavailable() -> None:
    assert decide(new(opened("0"), 3.0), group("1", healthy=1)) == ("0", "")
    assert decide(new(opened("0"), 3.0), limit=0) == ("0", "")


def test_new_groups_take_turns_when_no_node_is_closed() -> None:
    groups = [new(group("0"), 100.0), new(group("1"), 100.0), group("2")]
    turns = [decide(*groups, now=NOW + minute * MINUTE)[1] for minute in range(2)]
    assert sorted(turns) == ["0", "1"]
    assert decide(new(group("0"), 100.0), group("1", wanted=True)) == ("", "1")
    assert decide(new(group("1"), 100.0), opened("2")) == ("2", "")
    assert decide(new(group("1"), 600.0), opened("2")) == ("", "")


def test_groups_on_closed_nodes_are_opened_first() -> None:
    assert decide(opened("0"), group("1", wanted=True)) == ("0", "")
    assert decide(opened("0", wanted=True), group("1")) == ("", "")
    assert decide(opened("0"), group("1", wanted=True), limit=2) == ("", "1")


def test_groups_on_closed_nodes_take_turns_when_too_many() -> None:
    wanted = [opened("0", wanted=True), group("1", wanted=True), group("2", wanted=True), group("3")]
    turns = [decide(*wanted, now=NOW + number * MINUTE) for number in range(3)]
    assert sorted(turns) == [("", ""), ("0", ""), ("0", "")]
    closed = [group("0", wanted=True), *wanted[1:]]
    assert sorted(decide(*closed, now=NOW + number * MINUTE)[1] for number in range(3)) == ["0", "1", "2"]
    found = evictablegroups.decide(
        wanted, evictablegroups.Allowance(limit=1, missing=0), DisruptionSettings(), NOW + MINUTE / 4
    )
    assert found.requeue_after == 45
    assert (
        evictablegroups.decide(
            wanted, evictablegroups.Allowance(limit=3, missing=0), DisruptionSettings(), NOW
        ).requeue_after
        is None
    )


def test_all_groups_take_turns_when_nodes_are_not_watched() -> None:
    all_closed = [group(str(number)) for number in range(4)]
    found = [decide(*all_closed, settings=BLIND, now=NOW + number * MINUTE)[1] for number in range(4)]
    assert sorted(found) == ["0", "1", "2", "3"]
    pairs = {decide(*all_closed, settings=BLIND, limit=2, now=NOW + number * MINUTE)[1] for number in range(4)}
    assert pairs == {"01", "23"}


def test_indexes_are_ordered_as_numbers() -> None:
    assert decide(group("10"), group("9"), limit=1) == ("", "9")


@some.composite
def any_groups(draw: some.DrawFn) -> list[ProtectedGroup]:
    flags = some.booleans()
    return [
        group(
            str(number),
            present=draw(flags),
            wanted=draw(flags),
            least=draw(some.sampled_from((0, 2))),
            healthy=draw(some.sampled_from((0, 1, 2, 2))),
            observed=draw(flags),
            disrupted=draw(flags),
        )
        for number in range(draw(some.integers(1, 6)))
    ]


@hypothesis.settings(max_examples=examples(60))
@given(any_groups(), some.integers(0, 4), some.integers(0, 2), some.booleans(), some.integers(0, 9))
def test_window_never_exceeds_the_budget(
    groups: list[ProtectedGroup], limit: int, missing: int, watches: bool, minutes: int
) -> None:
    """The permitted number limits open, missing, unconfirmed and newly opened groups, or no group is opened."""
    settings = DisruptionSettings(watches_nodes=watches)
    found = evictablegroups.decide(
        groups, evictablegroups.Allowance(limit=limit, missing=missing), settings, NOW + minutes * MINUTE
    )
    at_risk = {one.label for one in groups if not one.has_no_pending_eviction} | {one.label for one in found.to_open}
    assert not found.to_open or len(at_risk) + missing <= limit
    assert all(one.is_complete for one in found.to_close)


@hypothesis.settings(max_examples=examples(30))
@given(any_groups(), some.integers(1, 4), some.booleans())
def test_window_is_stable_and_opens_every_group_in_turn(
    groups: list[ProtectedGroup], limit: int, watches: bool
) -> None:
    """The initial state is any state with complete groups. Writes are observed immediately."""
    whole = [replace(one, is_present=True, budget=group(one.label).budget) for one in groups]
    settings = DisruptionSettings(watches_nodes=watches)
    seen: set[str] = set()
    for step in range(40):
        found = evictablegroups.decide(
            whole, evictablegroups.Allowance(limit=limit, missing=0), settings, NOW + step * MINUTE / 4
        )
        closed, open_now = ({one.label for one in some_groups} for some_groups in (found.to_close, found.to_open))
        whole = [
            group(one.label, wanted=one.must_move, least=2)
            if one.label in closed
            else opened(one.label, wanted=one.must_move)
            if one.label in open_now
            else one
            for one in whole
        ]
        seen |= {one.label for one in whole if one.is_open}
        assert sum(one.is_open for one in whole) <= limit
    assert {one.label for one in whole if one.must_move or not watches} <= seen
    assert sum(one.is_open for one in whole) == min(limit, len(whole))
