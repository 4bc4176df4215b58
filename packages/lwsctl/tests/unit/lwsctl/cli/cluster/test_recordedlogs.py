"""Tests the last log lines of deleted pods, which are displayed if a rank has no log."""

import pytest

from leaderworkerset.api.episode import Episode, Outcome, RecordedContainer, RecordedRank, RunTermination
from lwsctl.cli.cluster.recordedlogs import RankRequest, latest_logs
from lwsctl.views.selection import Selection


def container(name: str, *lines: str, code: int = 0) -> RecordedContainer:
    """Return a container with one run."""
    return RecordedContainer(name=name, ends=(RunTermination(exit_code=code),), logs=(lines,) if lines else ())


def episode(number: int, *ranks: RecordedRank, group: str = "0") -> Episode:
    """Return an episode of the LeaderWorkerSet `web`."""
    time = f"2026-11-25T09:00:{number:02}Z"
    return Episode(
        namespace="prod", lws="web", group=group, outcome=Outcome.FAILED, time=time, number=number, ranks=ranks
    )


FETCH = container("fetch", "downloading", "403 Forbidden", code=22)
EPISODES = [
    episode(1, RecordedRank(rank=0, pod="web-0", containers=(container("main", "old", code=1),))),
    episode(2, RecordedRank(rank=0, pod="web-0", containers=(container("main", "waits"), FETCH))),
    episode(3, RecordedRank(rank=0, pod="web-0", containers=(container("main"),))),
    episode(4, RecordedRank(rank=1, pod="web-1-1", containers=(container("main", "other"),)), group="1"),
]


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        (RankRequest(Selection("web")), {"0/0": ["downloading", "403 Forbidden"], "1/1": ["other"]}),
        (RankRequest(Selection("web", 0, 0), container="main"), {"0/0": ["waits"]}),
        (RankRequest(Selection("web"), groups=frozenset({1})), {"1/1": ["other"]}),
        (RankRequest(Selection("web"), ranks=frozenset({7})), {}),
    ],
    ids=["of the failed container", "of a named container", "of a group", "of a rank without lines"],
)
def test_newest_recorded_lines_of_each_rank_are_returned(wanted: RankRequest, shown: dict[str, list[str]]) -> None:
    assert {one.place: list(one.lines) for one in latest_logs(EPISODES, wanted)} == shown


def test_recorded_lines_have_a_note_about_their_failure() -> None:
    (log,) = latest_logs(EPISODES, RankRequest(Selection("web", 0, 0)))
    assert log.note("lws --local") == (
        "note: these log lines of web-0 were recorded at 2026-11-25T09:00:02Z; see "
        "`lws --local -n prod history web/0#2` for the complete record"
    )


def test_a_program_that_printed_nothing_has_an_empty_log() -> None:
    silent = episode(5, RecordedRank(rank=2, pod="web-2", containers=(container("main", code=137),)))
    (log,) = latest_logs([silent], RankRequest(Selection("web", 0, 2)))
    assert log.lines == ()
    assert log.note("lws --local") == (
        "note: web-2 has no log lines before the failure at 2026-11-25T09:00:05Z; see "
        "`lws --local -n prod history web/0#5`"
    )
