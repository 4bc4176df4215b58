"""Formats a view as short text for Python programs and notebooks. Pure."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

HEADER: Final = ("GROUP", "RANK", "POD", "STATE", "READY", "RESTARTS", "WHY")
CELLS: Final = attrgetter("group", "index", "pod", "state", "is_ready", "restarts", "why")
"""The values in the row of a rank."""


def render(summary: str, ranks: Iterable[object]) -> str:
    """Return the summary and a table of the ranks. API objects are not included."""
    rows = [HEADER, *(tuple(map(_cell, CELLS(rank))) for rank in ranks)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join([summary, *("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)])


def _cell(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)
