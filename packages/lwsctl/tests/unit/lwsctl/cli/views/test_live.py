"""Tests that a group prints at most one line per second on a pipe until it is ready, and its last state."""

from datetime import timedelta

import pytest
from testkit.fakeclock import FakeClock

from lwsctl.cli.views.live import PlainDisplay
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View


def views(ready: int, namespace: str = "prod") -> list[View]:
    ranks = tuple(Rank(group=0, index=at, pod=f"web-0-{at}", state="Running", is_ready=at < ready) for at in range(4))
    group = Group(index=0, ranks=ranks)
    return [
        View(name="web", namespace=namespace, ready=0, desired=1, up_to_date=0, created="", groups=(group,), object={})
    ]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_group_has_at_most_one_line_a_second(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay(clock)
    for ready in (1, 2, 3):
        display.update(views(ready))
    clock.time += timedelta(seconds=1)
    display.update(views(3))
    display.update(views(3))
    assert capsys.readouterr().err.splitlines() == [
        "web group 0: 1 of 4 ranks ready (3 Running)",
        "web group 0: 3 of 4 ranks ready (1 Running)",
    ]


def test_pending_line_is_printed_at_the_end(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay(clock)
    display.update(views(1))
    display.update(views(3))
    display.close()
    assert capsys.readouterr().err.splitlines()[-1] == "web group 0: 3 of 4 ranks ready (1 Running)"


def test_ready_group_is_printed_immediately(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay(clock)
    display.update(views(1))
    display.update(views(4))
    assert capsys.readouterr().err.splitlines()[-1] == "web group 0: 4 of 4 ranks ready"


def test_groups_of_two_namespaces_are_separate(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    PlainDisplay(clock).update([*views(1), *views(1, "test")])
    assert len(capsys.readouterr().err.splitlines()) == 2
