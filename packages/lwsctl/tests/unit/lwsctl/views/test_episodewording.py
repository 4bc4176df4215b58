"""Tests the text of recorded episodes."""

from datetime import UTC, datetime

from leaderworkerset.api.episode import Episode, Outcome, RecordedContainer, RecordedRank, RunTermination
from lwsctl.views.episodewording import sentence


def test_sentence_names_no_first_rank_if_it_is_unknown() -> None:
    ends = (RunTermination(exit_code=1),)
    ranks = tuple(
        RecordedRank(rank=number, pod="", containers=(RecordedContainer(name="app", ends=ends),)) for number in (0, 1)
    )
    episode = Episode(
        namespace="default",
        lws="web",
        group="0",
        outcome=Outcome.FAILED,
        time="2026-01-01T00:00:00Z",
        failed_pod="web-0-1",
        failure="app: exit code 3",
        ranks=ranks,
    )
    assert sentence(episode, datetime(2026, 1, 1, 0, 1, tzinfo=UTC)) == (
        "group 0 failed 60s ago; the rank that failed first is unknown (pod web-0-1: app: exit code 3)"
    )
