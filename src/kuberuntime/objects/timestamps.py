"""Timestamps as the API has them: RFC 3339 with whole seconds, UTC."""

from datetime import UTC, datetime


def render(moment: datetime) -> str:
    """Render a moment.

    >>> render(datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def parse(text: str) -> datetime:
    """Read a timestamp that `render` or a Kubernetes client wrote.

    >>> parse("2026-01-02T03:04:05Z")
    datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromisoformat(text)
