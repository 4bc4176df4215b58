"""Tests that a watch prints one line for each LeaderWorkerSet or group that has changed."""

from datetime import UTC, datetime
from typing import Any

from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import changes

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def view(*ranks: Rank, recreations: Recreations | None = None, **numbers: int) -> View:
    given: dict[str, Any] = {"ready": 0, "desired": 1, "up_to_date": 0, **numbers}
    groups = (Group(index=0, ranks=ranks, recreations=recreations),) if ranks else ()
    return View(name="web", namespace="default", created="", groups=groups, object={}, **given)


def rank(state: str, index: int = 1, **more: Any) -> Rank:
    return Rank(group=0, index=index, pod=f"web-0-{index}", state=state, **more)


def between(before: list[View], after: list[View], *paused: str, with_namespace: bool = False) -> list[str]:
    old, new = (changes.subjects(views, NOW, with_namespace=with_namespace) for views in (before, after))
    return list(changes.lines(old, new, paused).values())


def test_unchanged_view_has_no_line() -> None:
    assert between([view(rank("Running"))], [view(rank("Running"))]) == []


def test_changed_counts_and_ranks_are_named() -> None:
    after = view(rank("Running", is_ready=True, restarts=2, is_stub=True), ready=1, up_to_date=1)
    assert between([view(rank("Pending", why="no node"))], [after]) == [
        "web: READY 1, DESIRED 1, UP-TO-DATE 1",
        "web/0/1: Running (stub), ready, 2 restarts",
    ]


def test_reasons_are_named() -> None:
    assert between([view()], [view(rank("Pending", why="no node"))]) == ["web/0/1: Pending: no node"]


def test_ranks_of_a_group_that_changed_together_are_one_line() -> None:
    before = [view(rank("Pending"), rank("Pending", 2), rank("Pending", 3))]
    after = [view(rank("Running", is_ready=True), rank("Running", 2), rank("Pending", 3))]
    assert between(before, after) == ["web group 0: 1 of 3 ranks ready (1 Pending, 1 Running)"]
    assert between(before, after, with_namespace=True)[0].startswith("default/web group 0: 1 of 3 ")


def test_recreation_is_a_line_of_the_group() -> None:
    again = Recreations(count=1, failed_pod="web-0-1", due=NOW)
    (line,) = between([view(rank("Running"))], [view(rank("Running"), recreations=again)])
    assert line.startswith("web group 0: 0 of 1 rank ready (1 Running); ")
    assert "web-0-1" in line


def test_removed_rank_is_a_line_of_the_group() -> None:
    before, after = [view(rank("Running"), rank("Running", 2))], [view(rank("Running"))]
    assert between(before, after) == ["web group 0: 0 of 1 rank ready (1 Running)"]


def test_paused_group_has_no_line() -> None:
    after = [view(rank("Running"), ready=1)]
    assert between([view(rank("Pending"))], after, "web group 0") == ["web: READY 1, DESIRED 1, UP-TO-DATE 0"]


def test_deleted_set_is_one_line_without_its_groups() -> None:
    assert between([view(rank("Running"))], [view()]) == ["web group 0: deleted"]
    assert between([view(rank("Running"))], []) == ["web: deleted"]
