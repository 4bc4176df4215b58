"""The conditions of a LeaderWorkerSet, each declared once: status, definition and metrics are made of them."""

from typing import Final, NamedTuple


class ConditionOutcome(NamedTuple):
    """A condition that can become True: its type, and the reason and message it then has (R-STAT-11).

    The message is empty where it names groups (`exhausted.py`).
    """

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
    frozenset({"Progressing", "UpdateInProgress"}),
)
PROGRESSING: Final = ConditionOutcome(
    "Progressing",
    "GroupsProgressing",
    "Replicas are progressing",
    "groups are created, become ready or are updated",
    frozenset({"Available"}),
)
UPDATE_IN_PROGRESS: Final = ConditionOutcome(
    "UpdateInProgress",
    "GroupsUpdating",
    "Rolling Upgrade is in progress",
    "groups of an earlier template are replaced",
    frozenset({"Available"}),
)
RESTARTS_EXHAUSTED: Final = ConditionOutcome(
    "RestartsExhausted",
    "MaxGroupRestartsExceeded",
    "",
    "groups failed too often in a row and are left as they are; absent while there are none",
)
WORKLOAD_SCHEDULING_CREATED: Final = ConditionOutcome(
    "WorkloadSchedulingCreated",
    "SchedulingPrerequisitesCreated",
    "scheduling prerequisites created",
    "the objects exist that `spec.scheduling` needs before the leaders; absent without that field",
)
CONDITIONS: Final = (AVAILABLE, PROGRESSING, UPDATE_IN_PROGRESS, RESTARTS_EXHAUSTED, WORKLOAD_SCHEDULING_CREATED)
