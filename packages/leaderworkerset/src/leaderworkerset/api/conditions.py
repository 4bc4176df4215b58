"""The conditions of a LeaderWorkerSet, each declared once: status, definition and metrics are made of them."""

from typing import Final, NamedTuple


class ConditionOutcome(NamedTuple):
    """A condition that can become True: its type, and the reason and message it then has (R-STAT-11)."""

    type: str
    reason: str
    message: str
    description: str
    excludes: frozenset[str] = frozenset()
    """The types that cannot be True at the same time (R-STAT-12)."""


AVAILABLE: Final = ConditionOutcome(
    "Available",
    "AllGroupsReady",
    "All replicas are ready",
    "every group is ready",
    frozenset({"Progressing", "UpdateInProgress", "Complete", "Failed"}),
)
PROGRESSING: Final = ConditionOutcome(
    "Progressing",
    "GroupsProgressing",
    "Replicas are progressing",
    "groups are created, become ready or are updated",
    frozenset({"Available", "Complete", "Failed"}),
)
UPDATE_IN_PROGRESS: Final = ConditionOutcome(
    "UpdateInProgress",
    "GroupsUpdating",
    "Rolling Upgrade is in progress",
    "groups of an earlier template are replaced",
    frozenset({"Available", "Complete", "Failed"}),
)
COMPLETE: Final = ConditionOutcome(
    "Complete",
    "AllGroupsComplete",
    "All replicas are complete",
    "the leader of every group of a set that runs to completion has exited with code 0; absent until then",
    frozenset({"Available", "Progressing", "UpdateInProgress", "Failed"}),
)
FAILED: Final = ConditionOutcome(
    "Failed",
    "DeadlineExceeded",
    "One or more replicas were not complete at the deadline",
    "groups of a set that runs to completion were terminated at its deadline, and no other group runs; absent until then",
    frozenset({"Available", "Progressing", "UpdateInProgress", "Complete"}),
)
DEGRADED: Final = ConditionOutcome(
    "Degraded",
    "ReplicaRestartBudgetExceeded",
    "Automatic recovery is stopped for one or more replicas",
    "groups used up their restarts, were terminated and are kept for diagnosis",
)
WORKLOAD_SCHEDULING_CREATED: Final = ConditionOutcome(
    "WorkloadSchedulingCreated",
    "SchedulingPrerequisitesCreated",
    "scheduling prerequisites created",
    "the objects exist that `spec.scheduling` needs before the leaders; absent without that field",
)
MOVE_IN_PROGRESS: Final = ConditionOutcome(
    "MoveInProgress",
    "GroupsMoving",
    "Groups have to leave nodes",
    "groups are to leave their nodes, and are moved as the budget allows; absent until the first one is",
)
CONDITIONS: Final = (
    AVAILABLE,
    PROGRESSING,
    UPDATE_IN_PROGRESS,
    COMPLETE,
    FAILED,
    DEGRADED,
    WORKLOAD_SCHEDULING_CREATED,
    MOVE_IN_PROGRESS,
)

NOT_DEGRADED: Final = ("AsExpected", "No replica has exhausted its restart budget")
"""Reason and message of `DEGRADED` while it is False (N-ST-11)."""

NOT_MOVING: Final = ("AsExpected", "No group has to leave a node")
"""Reason and message of `MOVE_IN_PROGRESS` once it is False."""

STOPPED: Final = {
    AVAILABLE.type: "Not all replicas are ready",
    PROGRESSING.type: DEGRADED.message,
    UPDATE_IN_PROGRESS.type: "No rolling update is in progress",
}
"""The messages of conditions that are False because groups are exhausted; the reason is that of `DEGRADED` (N-ST-12)."""

FORMER: Final = "RestartsExhausted"
"""A condition of earlier versions, which none sets any more."""
