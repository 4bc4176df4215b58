"""Bugs of groups with limited restarts: counts, evidence, recoveries, and the counts of replaced groups."""

from typing import Any
from unittest.mock import patch

from leaderworkerset.core.leaderworkerset import failedgroups
from leaderworkerset.core.policies import restartpolicy
from leaderworkerset.core.restarts import retention


def never_counts() -> Any:
    """Restart a group as often as it fails, regardless of the limit."""
    return patch.object(restartpolicy, "_count", lambda group, new: ())


def never_keeps() -> Any:
    """Keep only the leader of an exhausted group, and delete its workers."""
    return patch.object(retention, "keep", lambda pods: ())


def never_releases() -> Any:
    """Keep evidence after recovery and deletion."""
    return patch.object(retention, "release", lambda pods: ())


def never_claims() -> Any:
    """Let the leader that replaces another one with a random key begin without used restarts (N-RB-13)."""
    return patch.object(failedgroups, "_claim", lambda counts, admitted, owners: dict(counts))
