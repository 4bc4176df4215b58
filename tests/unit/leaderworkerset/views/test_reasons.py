"""Why a group or a LeaderWorkerSet is not ready."""

from datetime import UTC, datetime

from leaderworkerset.views.groups import Group, Rank, View
from leaderworkerset.views.reasons import first_problem, reasons, summary

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MISSING = Rank(group=0, index=1, pod="web-0-1", state="Missing", why="not created yet")
BROKEN = Rank(group=0, index=0, pod="web-0", state="CrashLoopBackOff", why="main: Error (exit code 3)")
READY = Rank(group=0, index=0, pod="web-0", state="Running", is_ready=True)


def view(*ranks: Rank) -> View:
    return View(
        name="web",
        namespace="default",
        ready=0,
        desired=1,
        up_to_date=1,
        created="",
        groups=(Group(index=0, ranks=ranks),),
        object={},
    )


def test_the_first_rank_with_a_reason_is_named() -> None:
    shown = view(MISSING, BROKEN)

    assert reasons(shown) == "; web-0 is CrashLoopBackOff: main: Error (exit code 3) (and 1 more rank)"


def test_nothing_is_named_where_every_rank_is_ready() -> None:
    assert reasons(view(READY)) == ""


def test_a_state_of_every_start_is_no_problem() -> None:
    assert first_problem(Group(index=0, ranks=(READY, MISSING))) == ""


def test_a_summary_counts_what_is_not_ready_and_names_the_problem() -> None:
    shown = view(MISSING, BROKEN)

    assert summary(shown, shown.groups[0], NOW) == (
        "web group 0: 0 of 2 ranks ready (1 CrashLoopBackOff, 1 not created yet); web-0: main: Error (exit code 3)"
    )


def test_a_group_that_is_done_is_completed() -> None:
    done = Group(index=0, ranks=(Rank(group=0, index=0, pod="web-0", state="Completed"),))

    assert summary(view(), done, NOW) == "web group 0: 1 rank completed"
