"""Repeats the decisions of capabilities with the cached fields, in the same way as core decisions."""

from tests.unit.leaderworkerset.core.conftest import _decide_again

__all__ = ["_decide_again"]
