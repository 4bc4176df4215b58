"""Colors on a terminal, unless NO_COLOR is set (no-color.org)."""

import os
from typing import Final, TextIO

COLORS: Final = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
"""ANSI codes; groups use them in turn, and within a group its ranks."""


def wanted(stream: TextIO) -> bool:
    """Return whether output to this stream is colored."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Painter:
    """Colors words, or returns them unchanged."""

    def __init__(self, stream: TextIO) -> None:
        self._wanted = wanted(stream)

    def rank(self, text: str, group: int | str, rank: int | str = 0) -> str:
        """Color the name of a rank unlike its neighbors in the group and in neighboring groups."""
        if not self._wanted or not isinstance(group, int) or not isinstance(rank, int):
            return text
        return f"\x1b[{COLORS[(group + rank) % len(COLORS)]}m{text}\x1b[0m"
