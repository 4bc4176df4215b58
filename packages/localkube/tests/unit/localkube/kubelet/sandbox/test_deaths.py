"""Tests when a launcher that has exited is replaced."""

from datetime import UTC, datetime, timedelta

from localkube.kubelet.sandbox.launcherprocess import LauncherExits
from localkube.kubelet.spec import backoff

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_launcher_deaths_increase_the_delay() -> None:
    deaths = LauncherExits()
    waits = []
    for _ in range(3):
        deaths.note(NOW)
        waits.append(deaths.not_before - NOW)
    assert waits == [timedelta(), timedelta(seconds=10), timedelta(seconds=20)]


def test_later_death_has_no_delay() -> None:
    deaths = LauncherExits()
    deaths.note(NOW)
    later = NOW + timedelta(hours=1)
    deaths.note(later)
    assert deaths.not_before == later


def test_clock_set_back_causes_no_delay() -> None:
    deaths = LauncherExits()
    deaths.note(NOW)
    deaths.note(NOW)
    assert backoff.is_before(deaths.not_before, NOW)
    assert not backoff.is_before(deaths.not_before, NOW - timedelta(days=400))
