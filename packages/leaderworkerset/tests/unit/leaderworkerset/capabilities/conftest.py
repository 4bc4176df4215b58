"""Decisions of capabilities are made again with what the caches keep, as those of the core are."""

from tests.unit.leaderworkerset.core.conftest import _decide_again

__all__ = ["_decide_again"]
