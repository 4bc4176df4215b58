"""Bugs of moves: too many groups are moved at once, or none, or unavailable groups are not counted."""

from typing import Any
from unittest.mock import patch

from leaderworkerset.capabilities.moves import moves


def moves_all_at_once() -> Any:
    """Move every group that waits, however few are available."""
    return patch.object(moves, "choose", lambda waiting, available, least: list(waiting))


def never_moves() -> Any:
    """Make every group wait forever."""
    return patch.object(moves, "choose", lambda waiting, available, least: [])


def forgets_who_is_away() -> Any:
    """Count waiting groups as available, including unavailable ones."""
    real = moves.choose

    def choose(waiting: Any, available: Any, least: int) -> Any:
        found = list(waiting)
        return real(found, {*available, *found, *map(str, range(1000, 1003))}, least)

    return patch.object(moves, "choose", choose)
