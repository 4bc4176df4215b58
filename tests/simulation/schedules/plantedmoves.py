"""Bugs of moves, to be found: too many groups are moved at once, or none is."""

from typing import Any
from unittest.mock import patch

from leaderworkerset.core.maintenance import moves


def moves_all_at_once() -> Any:
    """Move every group that waits, however few are available."""
    return patch.object(moves, "choose", lambda waiting, available, least: list(waiting))


def never_moves() -> Any:
    """Let every group wait for ever."""
    return patch.object(moves, "choose", lambda waiting, available, least: [])
