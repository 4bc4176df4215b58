"""Formats and parses API timestamps (RFC 3339 with whole seconds, UTC)."""

from datetime import UTC, datetime
from typing import Final

BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
"""A time before all other times, for objects without a time."""


def render(moment: datetime) -> str:
    """Format a time.

    >>> render(datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC))
    '2026-01-02T03:04:05Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def parse(text: str) -> datetime:
    """Parse a timestamp that was written by `render` or by a Kubernetes client.

    >>> parse("2026-01-02T03:04:05Z")
    datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    """
    return datetime.fromisoformat(text)


def read(text: str) -> datetime | None:
    """Parse an untrusted timestamp. Return None if it is invalid or has no time zone.

    >>> read("2026-01-02T03:04:05.123456789Z")
    datetime.datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=datetime.timezone.utc)
    >>> read("2026-01-02"), read("soon")
    (None, None)
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def moment(text: str | None) -> datetime:
    """Parse an untrusted timestamp, or return `BEGINNING` if it is absent or invalid."""
    return read(text or "") or BEGINNING
