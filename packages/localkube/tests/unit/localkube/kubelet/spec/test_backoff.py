"""Tests the crash back-off, which increases from 10 s to 300 s and is reset after 10 minutes."""

from datetime import timedelta

from tests.unit.localkube.kubelet.pods import after

from localkube.kubelet.spec.backoff import Backoff


def test_waits_double_from_zero_to_five_minutes() -> None:
    backoff, now, waits = Backoff(), 0.0, []
    for _ in range(8):
        wait = backoff.wait(after(now)).total_seconds()
        waits.append(wait)
        backoff = backoff.after_restart(after(now), after(now + wait))
        now += wait + 1
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]


def test_back_off_is_reset_after_ten_minutes() -> None:
    backoff = Backoff(timedelta(seconds=160), after(0))
    assert backoff.wait(after(600)) == timedelta(seconds=160)
    assert backoff.wait(after(601)) == timedelta()
    assert backoff.after_restart(after(601), after(601)) == Backoff(timedelta(seconds=10), after(601))
