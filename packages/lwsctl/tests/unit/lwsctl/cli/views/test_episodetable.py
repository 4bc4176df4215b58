"""Tests how recorded failures are displayed in the table, in full, and in `lws explain`."""

from datetime import UTC, datetime

from leaderworkerset.api.episode import (
    Episode,
    EpisodeEvent,
    Outcome,
    RecordedContainer,
    RecordedRank,
    Revision,
    RunTermination,
)
from lwsctl.cli.views import episodetable

NOW = datetime(2026, 11, 25, 9, 1, tzinfo=UTC)

ENDS = (RunTermination(exit_code=3, reason="Error"), RunTermination(exit_code=143))
FAILED = RecordedContainer(name="app", restarts=1, ends=ENDS, logs=((), tuple(map(str, range(9)))))
FULL = Episode(
    namespace="prod",
    lws="web",
    group="0",
    number=3,
    outcome=Outcome.RECREATED,
    time="2026-11-25T09:00:00Z",
    first_rank=1,
    failed_pod="web-0-1",
    failure="app: exit code 3",
    recreations=2,
    recreate_after="2026-11-25T09:00:10Z",
    revision=Revision(number=5, key="abc", created="2026-11-25T08:00:00Z", before=4, changes=("spec.x: 1 -> 2",)),
    ranks=(
        RecordedRank(rank=0, pod="web-0", containers=(RecordedContainer(name="app"),)),
        RecordedRank(rank=1, pod="web-0-1", node="n", containers=(FAILED,)),
    ),
    events=(
        EpisodeEvent(
            time="2026-11-25T09:00:00Z", object="pod/web-0", message="gone", is_warning=True, reason="Killing"
        ),
    ),
    masked=1,
    notes=("events could not be read",),
)
BARE = Episode(namespace="prod", lws="web", group="1", number=1, outcome=Outcome.FAILED, time="2026-11-25T09:00:30Z")


def test_episode_table_has_a_line_per_episode() -> None:
    assert episodetable.episode_table([FULL, BARE], NOW, with_namespace=True) == [
        "NAMESPACE   EPISODE   AGE   OUTCOME     FIRST   FAILURE",
        "prod        web/0#3   60s   recreated   1       app: exit code 3",
        "prod        web/1#1   30s   failed      -",
    ]


def test_full_episode_has_all_details() -> None:
    text = "\n".join(episodetable.episode_lines(FULL, NOW))
    for line in (
        "web/0#3: group 0 was recreated 60s ago, rank 1 failed first (pod web-0-1: app: exit code 3)",
        "Consecutive failures: 2; not recreated before 2026-11-25T09:00:10Z",
        "Revision: 5 (abc), created 2026-11-25T08:00:00Z",
        "Changes from revision 4:\n  spec.x: 1 -> 2",
        "Note: events could not be read",
        "Note: values that look like secrets are replaced with [masked], 1 time",
        "0      web-0     -      app         0          -",
        "1      web-0-1   n      app         1          3 Error, 143",
        "2026-11-25T09:00:00Z   Warning   Killing   pod/web-0   1       gone",
        "Log of rank 1 (web-0-1, app, run 2 of 2), the last 9 lines:\n  0\n  1",
    ):
        assert line in text
    assert list(episodetable.episode_lines(BARE, NOW))[:3] == [
        "web/1#1: group 1 failed 30s ago (pod -)",
        "Time: 2026-11-25T09:00:30Z",
        "",
    ]


def test_brief_episode_has_the_last_lines_of_the_first_failure() -> None:
    assert episodetable.brief_lines(FULL, NOW, "lws --local") == [
        "Last recorded failure: group 0 was recreated 60s ago, rank 1 failed first (pod web-0-1: app: exit code 3)",
        *(f"  {number}" for number in range(4, 9)),
        "  use lws --local history -n prod web/0#3 to show the complete record",
    ]
    assert len(episodetable.brief_lines(BARE, NOW, "lws")) == 2
