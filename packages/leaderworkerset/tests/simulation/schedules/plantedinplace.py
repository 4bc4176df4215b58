"""Bugs of updates in place: budgets, deletions, restarts mistaken for failures, and held StatefulSets."""

from typing import Any
from unittest.mock import patch

from leaderworkerset.capabilities.inplace import inplace as of_sets
from leaderworkerset.capabilities.inplace import inplacepods, inplaceresources
from leaderworkerset.capabilities.inplace import inplacesteps as of_groups
from leaderworkerset.core.leaderworkerset.groupindex import below


def lets_the_partition_fall() -> Any:
    """Mark groups and lower the partition at once, so that the StatefulSet controller deletes their leaders."""
    real = of_sets.Route.release

    def release(self: Any, statefulset: Any, folded: Any, size: int, span: range) -> tuple[int, int]:
        return real(self, statefulset, folded, size, span)[0], span.start

    return patch.object(of_sets.Route, "release", release)


def marks_all_at_once() -> Any:
    """Update all groups in place at the same time, despite the budget."""
    real = of_sets.Route.release

    def release(self: Any, statefulset: Any, folded: Any, size: int, span: range) -> tuple[int, int]:
        chosen, partition = real(self, statefulset, folded, size, span)
        return (below(folded.members, span.stop) if chosen else 0), partition

    return patch.object(of_sets.Route, "release", release)


def takes_updates_for_failures() -> Any:
    """Recreate a group because its containers were restarted with another image."""
    return patch.object(inplacepods, "excused", lambda pod: {})


def trusts_readiness_of_before() -> Any:
    """Report a group as updated while its pods still run, and are ready with, the previous image."""
    return patch.object(inplacepods, "is_settled", lambda pod: True)


def resizes_nothing() -> Any:
    """Record the desired resources of pods without changing them."""
    return patch.object(inplaceresources, "due", lambda pod, amounts: {})


def waits_for_what_no_node_has() -> Any:
    """Wait for a resize that is infeasible."""
    return patch.object(inplaceresources, "refusal", lambda pod: "")


def never_lets_go() -> Any:
    """Leave the StatefulSet of the workers in a state in which it replaces no pods."""
    rows = tuple(row for row in of_groups.STEPS if row.step is not of_groups.InPlaceStep.LET_GO)
    return patch.object(of_groups, "STEPS", rows)
