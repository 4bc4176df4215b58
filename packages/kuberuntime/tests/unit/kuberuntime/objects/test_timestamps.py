"""Tests that timestamps survive a round trip."""

from datetime import UTC, datetime, timedelta, timezone

from kuberuntime.objects import timestamps


def test_timestamps_are_in_utc_seconds_and_read_back() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=timezone(timedelta(hours=1)))
    assert timestamps.render(moment) == "2026-01-02T02:04:05Z"
    assert timestamps.parse("2026-01-02T02:04:05Z") == datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)
