"""Bugs of groups whose restarts are limited, to be found: counts, evidence, recoveries, and counts of replaced groups."""

from typing import Any
from unittest.mock import patch

from leaderworkerset.core.leaderworkerset import leftovers
from leaderworkerset.core.policies import restartpolicy
from leaderworkerset.core.restarts import retention


def never_counts() -> Any:
    """Restart a group as often as it fails, whatever the limit."""
    return patch.object(restartpolicy, "_count", lambda group, new: ())


def never_keeps() -> Any:
    """Keep the leader of an exhausted group alone: its workers go."""
    return patch.object(retention, "keep", lambda pods: ())


def never_releases() -> Any:
    """Keep evidence whatever is recovered or deleted."""
    return patch.object(retention, "release", lambda pods: ())


def never_claims() -> Any:
    """Make the leader that replaces another one with a random key begin with no restart used (N-RB-13)."""
    return patch.object(leftovers, "_claim", lambda counts, admitted, owners: dict(counts))
