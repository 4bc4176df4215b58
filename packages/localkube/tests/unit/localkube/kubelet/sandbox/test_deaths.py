"""When a launcher that died is replaced."""

from datetime import UTC, datetime, timedelta

from localkube.kubelet.sandbox.sandboxrunner import Deaths
from localkube.kubelet.spec import backoff

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_first_death_is_forgiven_and_the_next_ones_wait_longer_and_longer() -> None:
    deaths = Deaths()
    waits = []
    for _ in range(3):
        deaths.note(NOW)
        waits.append(deaths.not_before - NOW)
    assert waits == [timedelta(), timedelta(seconds=10), timedelta(seconds=20)]


def test_a_death_long_after_the_last_is_forgiven() -> None:
    deaths = Deaths()
    deaths.note(NOW)
    later = NOW + timedelta(hours=1)
    deaths.note(later)
    assert deaths.not_before == later


def test_a_clock_that_is_set_back_keeps_no_launcher_waiting() -> None:
    deaths = Deaths()
    deaths.note(NOW)
    deaths.note(NOW)
    assert backoff.is_early(deaths.not_before, NOW)
    assert not backoff.is_early(deaths.not_before, NOW - timedelta(days=400))
