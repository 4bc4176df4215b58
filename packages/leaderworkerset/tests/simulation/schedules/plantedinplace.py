"""Defines bugs of in-place updates: budgets, deletions, false failures, and blocked StatefulSets."""

from typing import Any
from unittest.mock import patch

from leaderworkerset.capabilities.inplace import inplace as of_sets
from leaderworkerset.capabilities.inplace import inplacesteps as of_groups
from leaderworkerset.core.leaderworkerset.groupindex import indexes_below


def lets_the_partition_fall() -> Any:
    """Mark groups and lower the partition in one step. The StatefulSet controller then deletes their leaders."""
    real = of_sets.Route.release

    def release(self: Any, statefulset: Any, group_summary: Any, size: int, span: range) -> tuple[int, int]:
        return real(self, statefulset, group_summary, size, span)[0], span.start

    return patch.object(of_sets.Route, "release", release)


def marks_all_at_once() -> Any:
    """Update all groups in place at the same time, regardless of the budget."""
    real = of_sets.Route.release

    def release(self: Any, statefulset: Any, group_summary: Any, size: int, span: range) -> tuple[int, int]:
        chosen, partition = real(self, statefulset, group_summary, size, span)
        return (indexes_below(group_summary.members, span.stop) if chosen else 0), partition

    return patch.object(of_sets.Route, "release", release)


def never_lets_go() -> Any:
    """Do not restore the StatefulSet of the workers to a state in which it replaces pods."""
    rows = tuple(row for row in of_groups.STEPS if row.step is not of_groups.InPlaceStep.LET_GO)
    return patch.object(of_groups, "STEPS", rows)
