"""Tests that the live view shows reasons at each width and unready groups first, and counts omitted groups."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from lwsctl.cli.views import livetable, tables
from lwsctl.cli.views.livetable import Size
from lwsctl.model.failurehistory import Recreations
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
AVAILABLE = {"type": "Available", "status": "True"}
LONG = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. preemption: no victims found for incoming pod"


def rank(group: int, index: int, state: str = "Running", **more: object) -> Rank:
    pod = f"web-{group}-{index}" if index else f"web-{group}"
    given = {"is_ready": state == "Running" and "why" not in more, "created": "2026-01-01T00:00:00Z", **more}
    return Rank(group=group, index=index, pod=pod, state=state, **given)  # type: ignore[arg-type]


def view(*groups: Group, updating: bool = False) -> View:
    conditions = [{"type": "UpdateInProgress", "status": "True" if updating else "False"}]
    return View(
        name="web",
        namespace="prod",
        ready=1,
        desired=len(groups),
        up_to_date=1,
        created="2026-01-01T00:00:00Z",
        groups=groups,
        object={"status": {"conditions": conditions}},
    )


def many(count: int, *broken: int, own: bool = False) -> View:
    made = [
        Group(
            index=at,
            ranks=(
                rank(at, 0, "Pending", why=f"{LONG}{at if own else ''}") if at in broken else rank(at, 0),
                rank(at, 1),
            ),
        )
        for at in range(count)
    ]
    return view(*made)


def shown(given: View, columns: int, lines: int | None = None) -> list[str]:
    return livetable.lines([given], NOW, Size(columns, lines))


FEW = view(
    Group(index=0, ranks=(rank(0, 0), rank(0, 1))), Group(index=1, ranks=(rank(1, 0, "Pending", why=LONG), rank(1, 1)))
)


def test_unready_groups_come_first_with_their_reason() -> None:
    assert shown(FEW, 200) == [
        "",
        "NAME   READY   DESIRED   UP-TO-DATE   AGE",
        "web    1       2         1            60s",
        "GROUP   RANK   POD       STATE     READY   RESTARTS   AGE   WHY",
        f"1       0      web-1     Pending   no      0          60s   {LONG}",
        "1       1      web-1-1   Running   yes     0          60s",
        "0       0      web-0     Running   yes     0          60s",
        "0       1      web-0-1   Running   yes     0          60s",
    ]


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_long_reason_is_printed_in_full_below(columns: int) -> None:
    lines = shown(FEW, columns)
    assert max(map(len, lines)) <= columns
    below = " ".join(line.strip() for line in lines[lines.index("") + 8 :])
    assert below == f"web-1: {LONG}"


def test_columns_are_dropped_before_rows_are_cut() -> None:
    assert shown(FEW, 52)[3:5] == [
        "GROUP   RANK   POD       STATE     READY   AGE",
        "1       0      web-1     Pending   no      60s",
    ]


def test_more_than_ten_groups_have_a_line_each() -> None:
    lines = shown(many(12, 7), 200)
    assert lines[3].split() == ["GROUP", "READY", "STATE", "RESTARTS", "AGE", "WHY"]
    assert lines[4].split()[:4] == ["7", "1/2", "1", "Pending"]
    assert lines[5].split() == ["0", "2/2", "ready", "0", "60s"]
    assert len(lines) == 4 + 12


def test_omitted_groups_are_counted_and_reasons_kept() -> None:
    lines = shown(many(100, 7, 8), 80, 20)
    assert len(lines) <= 20
    assert "… and 87 more groups, all ready" in lines
    assert " ".join(line.strip() for line in lines).endswith(f"web-7 and 1 more: {LONG}")


def test_first_reason_is_kept_on_a_low_terminal() -> None:
    lines = shown(many(100, 7, 8, own=True), 40, 13)
    assert len(lines) <= 13
    assert " ".join(line.strip() for line in lines[-5:]) == f"web-7: {LONG}7 … and 1 more reason"


def test_reason_of_many_ranks_is_printed_once() -> None:
    ranks = tuple(rank(0, at, "Pending", why=LONG) for at in range(4))
    lines = shown(view(Group(index=0, ranks=ranks)), 80)
    assert " ".join(line.strip() for line in lines[-2:]) == f"web-0 and 3 more: {LONG}"


def test_omitted_reasons_are_counted() -> None:
    ranks = tuple(rank(0, at, "Pending", why=f"{LONG} {at}") for at in range(5))
    lines = shown(view(Group(index=0, ranks=ranks)), 80)
    assert lines[-1] == "… and 2 more reasons"


def test_rollout_progress_is_counted() -> None:
    assert "web: updated 1 of 2 groups" in shown(view(*FEW.groups, updating=True), 100)
    assert not any("updated" in line for line in shown(FEW, 100))


def test_recreated_group_is_noted_in_both_forms() -> None:
    told = Recreations(count=2, failed_pod="web-0-1", due=NOW)
    few = shown(view(Group(index=0, ranks=(rank(0, 0),), recreations=told)), 100)
    assert few[-1] == "group 0 recreated 2 times, last 0s ago because pod web-0-1 failed"
    groups = [Group(index=at, ranks=(rank(at, 0),), recreations=None if at else told) for at in range(11)]
    assert any("recreated 2 times" in line for line in shown(view(*groups), 120))


def test_recreation_is_over_after_the_same_time_as_in_get() -> None:
    old = Recreations(count=2, failed_pod="web-0-1", due=NOW - timedelta(minutes=10))
    groups = [Group(index=at, ranks=(rank(at, 0),), recreations=None if at else old) for at in range(11)]
    texts = (shown(view(*groups), 120), tables.group_lines(view(*groups), NOW))
    assert not any("recreated" in line for lines in texts for line in lines)


def test_two_sets_share_the_height_and_show_their_namespace() -> None:
    lines = livetable.lines([many(50), many(50)], NOW, Size(100, 24), with_namespace=True)
    assert len(lines) <= 24
    assert sum("prod" in line for line in lines) == 2


def test_more_than_ten_sets_have_a_line_each() -> None:
    done = {"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "conditions": [AVAILABLE]}}
    views = [replace(many(2), name=f"set-{at:02}", ready=2, object=done) for at in range(12)]
    views += [replace(many(2, 0), name="stuck"), replace(many(2, 1), name="also")]
    lines = livetable.lines(views, NOW, Size(80, 12))
    assert lines[1] == "NAME     READY   DESIRED   UP-TO-DATE   AGE"
    assert lines[2].startswith("stuck")
    assert lines[3].startswith("also")
    assert any(re.fullmatch(r"… and \d+ more sets, all ready", line) for line in lines)
    assert f"web-0 and 1 more: Pending, {LONG}" in " ".join(" ".join(lines).split())
    assert len(lines) <= 12
