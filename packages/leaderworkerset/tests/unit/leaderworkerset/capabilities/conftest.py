"""Repeats decisions of capabilities with the cached fields, as for decisions of the core."""

from tests.unit.leaderworkerset.core.conftest import _decide_again

__all__ = ["_decide_again"]
