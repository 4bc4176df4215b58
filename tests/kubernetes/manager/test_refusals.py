"""Tests which rejected creations are accepted when managers are killed."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.kubernetes.manager.refusals import unexplained

LOG = 'WARN failed to reconcile {{"error":"create StatefulSet team/web-0: POST /apis/apps/v1/… {}","retry_in":0.005}}'


def creation(second: int, code: int) -> dict[str, Any]:
    """Return the audit event for the creation of web-0."""
    return {
        "verb": "create",
        "objectRef": {"resource": "statefulsets", "name": "web-0"},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{second:02}.000000Z",
        "responseStatus": {"code": code},
    }


@pytest.mark.parametrize(
    ("codes", "log", "kills", "count"),
    [
        ((201,), "", [], 0),
        ((201, 409), "", [], 1),
        ((409,), "", [], 1),
        ((504, 409), "", [], 0),
        ((201, 409), "did not respond within 0.4 s, the remaining time of the lease", [], 0),
        ((201, 409), "was cancelled: this process is no longer the leader", [], 0),
        ((201, 409), "was not sent: this process is no longer the leader", [], 1),
        ((201, 409, 409), "did not respond within 0.4 s, the remaining time of the lease", [], 1),
        ((201, 409), "", [datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)], 0),
        ((201, 409), "", [datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)], 1),
    ],
)
def test_rejected_creation_follows_an_unconfirmed_one(
    codes: tuple[int, ...], log: str, kills: list[datetime], count: int
) -> None:
    events = [creation(second, code) for second, code in enumerate(codes)]
    assert len(unexplained(events, [LOG.format(log)], kills)) == count
