"""Tests that equal groups share a row, problems come first, and no group is omitted."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views.grouprows import group_rows
from lwsctl.views.selection import unready_view

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def group(index: int, *, revision: str = "abc", why: str = "", **changes: object) -> Group:
    """Return a group of two ranks that contains this worker."""
    pods = (f"web-{index}", f"web-{index}-1")
    leader = Rank(group=index, index=0, pod=pods[0], state="Running", is_ready=True, created="2026-01-01T00:00:00Z")
    worker = {"group": index, "index": 1, "pod": pods[1], "state": "Running", "is_ready": True, "why": why, **changes}
    return Group(index=index, ranks=(leader, Rank(**worker)), revision=revision)  # type: ignore[arg-type]


def failing(index: int, why: str) -> Group:
    return group(index, why=why, state="CrashLoopBackOff", is_ready=False, restarts=2)


def test_problems_come_first_and_the_healthy_are_one_row() -> None:
    found = group_rows([group(0), group(1), failing(2, "exit code 1"), group(3), failing(4, "exit code 1")], NOW)
    assert [(fold.group_names, fold.state, fold.is_fine, fold.restarts) for fold in found] == [
        ("2,4", "1 CrashLoopBackOff", False, 4),
        ("0-1,3", "ready", True, 0),
    ]
    assert found[0].reason == "web-2-1: exit code 1"
    assert (found[1].ready_ranks, found[1].ranks) == (6, 6)
    assert found[1].age(NOW) == "60s"


def test_recreated_groups_join_the_healthy_after_some_time() -> None:
    def recreated(index: int, minutes: int, *, is_ready: bool = True) -> Group:
        due = NOW - timedelta(minutes=minutes)
        told = Recreations(count=1, failed_pod=f"web-{index}-1", due=due)
        return replace(group(index, is_ready=is_ready), recreations=told)

    groups = [group(0), recreated(1, 10), recreated(2, 9), recreated(3, 10, is_ready=False)]
    assert [(fold.group_names, "recreated 1 time" in fold.reason) for fold in group_rows(groups, NOW)] == [
        ("3", True),
        ("0-1", False),
        ("2", True),
    ]


def test_different_reasons_and_revisions_have_separate_rows() -> None:
    groups = [failing(0, "exit code 1"), failing(1, "exit code 2"), group(2), group(3, revision="new")]
    assert [fold.group_names for fold in group_rows(groups, NOW)] == ["0", "1", "2", "3"]


def test_reasons_are_equal_except_for_the_pod_name() -> None:
    groups = [failing(index, f"Create Pod web-{index}-1 failed") for index in (3, 4)]
    (fold,) = group_rows(groups, NOW)
    assert (fold.group_names, fold.reason) == ("3-4", "Create Pod web-3-1 failed")


def test_ages_of_several_leaders_are_a_range() -> None:
    old = Group(index=0, ranks=(Rank(group=0, index=0, pod="web-0", state="Running", is_ready=True),))
    assert group_rows([old], NOW)[0].age(NOW) == ""
    ranks = [
        Rank(group=0, index=0, pod=f"web-{at}", state="Running", is_ready=True, created=f"2026-01-01T00:00:{at:02}Z")
        for at in (0, 30)
    ]
    (fold,) = group_rows([Group(index=at, ranks=(rank,)) for at, rank in enumerate(ranks)], NOW)
    assert fold.age(NOW) == "30s-60s"


def view(*groups: Group, ready: bool = True) -> View:
    obj = {
        "metadata": {"generation": 1},
        "status": {
            "observedGeneration": 1,
            "conditions": [{"type": "Available", "status": "True" if ready else "False"}],
        },
    }
    count = len(groups)
    return View(
        name="web", namespace="d", ready=count, desired=count, up_to_date=0, created="", groups=groups, object=obj
    )


def test_filter_keeps_unready_ranks_only() -> None:
    kept = unready_view(view(group(0), failing(1, "exit code 1")))
    assert kept is not None
    assert [rank.place for one in kept.groups for rank in one.ranks] == ["1/1"]


@pytest.mark.parametrize("available", [True, False])
def test_ready_set_is_kept_while_its_status_is_incomplete(available: bool) -> None:
    kept = unready_view(view(group(0), ready=available))
    assert (kept is None) == available
