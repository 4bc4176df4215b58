"""Formats events as a table in chronological order, or as one line for each new event. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from leaderworkerset.api.eventvalue import EventValue
from lwsctl.cli.views import output
from lwsctl.views import wording

HEADER: Final = ("AGE", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE")


def event_table(happened: Sequence[EventValue], now: datetime, indent: str = "") -> list[str]:
    """Return the table of events, starting with the oldest."""
    rows = [(wording.duration(now - event.last), *_cells(event)) for event in happened]
    return output.table(HEADER, rows, indent)


def event_line(event: EventValue) -> str:
    """Return an event as one line that starts with its time."""
    kind, reason, about, count, message = _cells(event)
    times = f" (x{count})" if event.count > 1 else ""
    return f"{event.last:%Y-%m-%dT%H:%M:%SZ} {kind} {reason} {about}{times}: {message}"


def _cells(event: EventValue) -> tuple[str, str, str, str, str]:
    kind = "Warning" if event.is_warning else "Normal"
    return kind, event.reason or "-", event.object, str(event.count), event.message
