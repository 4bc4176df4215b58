"""A watch prints one line for each thing that another line would describe."""

from typing import Any

from leaderworkerset.views import changes
from leaderworkerset.views.groups import Group, Rank, View


def view(*ranks: Rank, **numbers: int) -> View:
    given: dict[str, Any] = {"ready": 0, "desired": 1, "up_to_date": 0, **numbers}
    groups = (Group(index=0, ranks=ranks),)
    return View(name="web", namespace="default", created="", groups=groups, object={}, **given)


def rank(state: str, **more: Any) -> Rank:
    return Rank(group=0, index=1, pod="web-0-1", state=state, **more)


def test_the_same_is_no_line() -> None:
    assert changes.lines([view(rank("Running"))], [view(rank("Running"))]) == []


def test_new_numbers_and_ranks_are_told_with_their_names() -> None:
    after = view(rank("Running", is_ready=True, restarts=2, is_stub=True), ready=1, up_to_date=1)
    assert changes.lines([view(rank("Pending", why="no node"))], [after]) == [
        "web: READY 1, DESIRED 1, UP-TO-DATE 1",
        "web/0/1: Running (stub), ready, 2 restarts",
    ]


def test_reasons_are_told() -> None:
    assert changes.lines([view()], [view(rank("Pending", why="no node"))]) == ["web/0/1: Pending: no node"]


def test_what_is_no_more_is_gone() -> None:
    assert changes.lines([view(rank("Running"))], []) == ["web: gone", "web/0/1: gone"]
