"""Tests the parsing of container output and annotations about progress, also from malicious strings."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderworkerset.api import progressannotations
from leaderworkerset.api.progressannotations import (
    Hang,
    Progress,
    SilentRank,
    parse_annotation,
    parse_hang,
    parse_log_line,
    render,
)

AT = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
LINE = progressannotations.MARK + "step=120 total=5000 loss=2.1 lr=3e-4 accuracy=51.5%"
RANK = SilentRank(pod="web-0-1", uid="u", rank=1, since=AT, waits="a lock (futex)")


def test_progress_line_has_step_total_and_metrics() -> None:
    metrics = (("loss", "2.1"), ("lr", "3e-4"), ("accuracy", "51.5%"))
    assert parse_log_line(LINE) == Progress(step=120, total=5000, metrics=metrics)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "step=1",
        " ::lws progress step=1",
        "::lws progress",
        "::lws progress ",
        "::lws progress total=3",
        "::lws progress step=",
        "::lws progress step=-1",
        "::lws progress step=1.5",
        "::lws progress step=\u0661",
        "::lws progress step=" + "9" * 30,
        "::lws progress step=" + "9" * 5000,
        "::lws progress step=1 " + "x" * 5000,
        "::lws progress step=1=2",
        "::lws\x00progress step=1",
    ],
)
def test_other_lines_are_not_progress(line: str) -> None:
    assert parse_log_line(line) is None


def test_metrics_are_numbers_up_to_a_limit() -> None:
    many = " ".join(f"m{number}={number}" for number in range(100))
    found = parse_log_line(
        f"{progressannotations.MARK}step=1 total=0 at=x rate=7 bad=<script> nan=nan inf=-inf \x1b[31m=1 {many}"
    )
    assert found is not None
    assert (found.total, found.at, found.rate) == (None, None, 0.0)
    assert found.metrics[:3] == (("nan", "nan"), ("inf", "-inf"), ("m0", "0"))
    assert len(found.metrics) == progressannotations.MOST_METRICS


def test_progress_annotation_round_trips() -> None:
    said = Progress(step=120, total=5000, metrics=(("loss", "nan"),), at=AT, rate=0.25)
    assert parse_annotation(render(said)) == said
    assert render(Progress(step=1)) == "step=1"


@pytest.mark.parametrize(
    "text",
    ["", "step=1", "step=1 at=yesterday", "step=1 at=2026-11-25T12:00:00", "at=2026-11-25T12:00:00+00:00", "a" * 3000],
)
def test_annotation_without_step_or_time_is_ignored(text: str) -> None:
    assert parse_annotation(text) is None


@given(st.text(max_size=300))
def test_arbitrary_text_raises_no_error(text: str) -> None:
    parse_log_line(progressannotations.MARK + text)
    parse_annotation(text)
    parse_hang(text)


def test_share_and_remaining_time_follow_from_the_rate() -> None:
    said = Progress(step=100, total=200, at=AT, rate=2.0)
    assert said.fraction == 0.5
    assert said.remaining_time(AT + timedelta(seconds=10)) == timedelta(seconds=40)
    assert said.remaining_time(AT + timedelta(hours=1)) == timedelta()
    assert Progress(step=300, total=200).fraction == 1.0
    assert Progress(step=1, total=10**18, at=AT, rate=1e-9).remaining_time(AT) == timedelta(seconds=1e9)


@pytest.mark.parametrize("said", [Progress(step=1, at=AT, rate=1.0), Progress(step=1, total=2, rate=1.0),
                                  Progress(step=1, total=2, at=AT)])  # fmt: skip
def test_remaining_time_is_unknown_without_total_time_or_rate(said: Progress) -> None:
    assert said.remaining_time(AT) is None
    assert said.total is not None or said.fraction is None


def test_hang_annotation_round_trips_with_limited_ranks() -> None:
    hang = Hang(since=AT, ranks=(RANK,) * 100)
    assert parse_hang(progressannotations.render_hang(hang)) == Hang(
        since=AT, ranks=(RANK,) * progressannotations.MOST_RANKS
    )
    assert hang.longest_silent_rank == RANK


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"since": "2026-11-25T12:00:00Z", "ranks": []}',
        '{"since": "soon", "ranks": [{"pod": "a", "uid": "", "rank": 1, "since": "2026-11-25T12:00:00Z"}]}',
        '{"since": "2026-11-25T12:00:00Z", "ranks": [{"pod": "a", "uid": "", "rank": -1, "since": "2026-11-25T12:00:00Z"}]}',
        '{"since": "2026-11-25T12:00:00Z", "ranks": [{"pod": "", "uid": "", "rank": 1, "since": "2026-11-25T12:00:00Z"}]}',
        '{"since": "2026-11-25T12:00:00Z", "ranks": [{"pod": "a", "uid": "", "rank": 1, "since": ""}]}',
        '{"since": "2026-11-25T12:00:00Z", "ranks": [{"pod": "a", "uid": 5, "rank": 1, "since": ""}]}',
        "[" * 5000,
        '"' + "a" * 9000 + '"',
    ],
)
def test_unreadable_hang_annotation_is_ignored(text: str) -> None:
    assert parse_hang(text) is None


def test_waiting_reason_of_a_rank_is_one_short_line() -> None:
    text = progressannotations.render_hang(
        Hang(since=AT, ranks=(SilentRank(pod="a", uid="", rank=0, since=AT, waits="x\n" * 500),))
    )
    found = parse_hang(text)
    assert found is not None
    assert "\n" not in found.longest_silent_rank.waits
    assert len(found.longest_silent_rank.waits) <= progressannotations.LONGEST_WORDS
