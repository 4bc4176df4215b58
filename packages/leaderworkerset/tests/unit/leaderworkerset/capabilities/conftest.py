"""Decisions of capabilities are repeated with the fields that caches keep, like those of the core."""

from tests.unit.leaderworkerset.core.conftest import _decide_again

__all__ = ["_decide_again"]
