"""Defines bugs of moves. Too many groups move at once, none moves, or unavailable groups are not counted."""

from typing import Any
from unittest.mock import patch

from leaderworkerset.capabilities.moves import moves


def moves_all_at_once() -> Any:
    """Move every waiting group, regardless of the number of available groups."""
    return patch.object(moves, "choose_groups", lambda waiting, available, least: list(waiting))


def never_moves() -> Any:
    """Make every group wait forever."""
    return patch.object(moves, "choose_groups", lambda waiting, available, least: [])


def forgets_who_is_away() -> Any:
    """Count all waiting groups as available, including unavailable ones."""
    real = moves.choose_groups

    def choose(waiting: Any, available: Any, least: int) -> Any:
        found = list(waiting)
        return real(found, {*available, *found, *map(str, range(1000, 1003))}, least)

    return patch.object(moves, "choose_groups", choose)
