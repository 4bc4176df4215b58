"""Defines bugs of disruption budgets. Groups are opened too early or never, or budgets are not deleted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from leaderworkerset.capabilities.disruption import evictablegroups, groupbudget, reconcile
from leaderworkerset.capabilities.disruption.evictablegroups import Allowance
from leaderworkerset.capabilities.disruption.groupbudget import ProtectedGroup


@contextmanager
def opens_before_the_closed_one_is_proved() -> Iterator[None]:
    """Open the next group as soon as the previous one is closed, before its last evictions are observed."""
    unproved = patch.multiple(
        ProtectedGroup,
        is_complete=property(lambda self: self.budget is not None and self.is_present),
        has_no_pending_eviction=property(lambda self: self.budget is not None and not self.is_open),
    )
    with unproved, patch.object(evictablegroups, "LINGERING", 0.0):
        yield


def forgets_who_is_missing() -> Any:
    """Count the existing groups, so that a group whose leader does not exist yet is not counted."""
    return patch.object(
        evictablegroups, "Allowance", lambda limit, missing: Allowance(limit=limit, missing=missing * 0)
    )


def never_opens() -> Any:
    """Keep all groups closed, so that every drain waits forever."""
    return patch.object(evictablegroups, "_groups_to_open", lambda groups, candidates, budget: [])


def never_takes_turns() -> Any:
    """Keep the first group that a drain may need open, although other groups wait."""
    return patch.object(evictablegroups, "_select_groups", lambda whole, places, settings, now: (whole[:places], None))


def leaves_budgets() -> Any:
    """Do not delete the closed budgets when a LeaderWorkerSet no longer has a disruption budget."""
    return patch.object(reconcile, "guarded_delete", lambda resource, budget: groupbudget.set_min_available(budget, 1))
