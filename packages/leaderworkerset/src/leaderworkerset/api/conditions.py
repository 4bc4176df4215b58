"""Defines the condition types of a LeaderWorkerSet.

Status, definition, metrics, `lws wait --for` and the health checks for other tools are built from the rows. A row has
no defaults, so that the type checker names the missing parts of a new condition.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class ObjectHealth(StrEnum):
    """The meaning of a condition for tools that wait until an object is healthy (Argo CD, Flux)."""

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    DEGRADED = "Degraded"
    REQUIRED = "Required"
    """The object is progressing while the condition is False."""
    NEUTRAL = "Neutral"
    """The condition does not affect the health status."""


class ConditionOutcome(NamedTuple):
    """A condition that can become True, with its type, reason and message (R-STAT-11)."""

    type: str
    reason: str
    message: str
    description: str
    excludes: frozenset[str]
    """The condition types that are mutually exclusive (R-STAT-12)."""
    health: ObjectHealth
    wait_words: tuple[str, ...]
    """The `lws wait --for` keywords for the condition. `condition=TYPE` waits for any condition."""
    exhausted_message: str | None
    """The message of a False condition if the restarts of groups are exhausted (N-ST-12).

    None if exhausted groups do not change the message.
    """


_STOPPED: Final = "Automatic recovery is stopped for one or more replicas"

AVAILABLE: Final = ConditionOutcome(
    "Available",
    "AllGroupsReady",
    "All replicas are ready",
    "every group is ready",
    excludes=frozenset({"Progressing", "UpdateInProgress", "Complete", "Failed"}),
    health=ObjectHealth.HEALTHY,
    wait_words=("ready",),
    exhausted_message="Not all replicas are ready",
)
PROGRESSING: Final = ConditionOutcome(
    "Progressing",
    "GroupsProgressing",
    "Replicas are progressing",
    "groups are being created, started or updated",
    excludes=frozenset({"Available", "Complete", "Failed"}),
    health=ObjectHealth.PROGRESSING,
    wait_words=(),
    exhausted_message=_STOPPED,
)
UPDATE_IN_PROGRESS: Final = ConditionOutcome(
    "UpdateInProgress",
    "GroupsUpdating",
    "Rolling Upgrade is in progress",
    "groups with a previous revision are being replaced",
    excludes=frozenset({"Available", "Complete", "Failed"}),
    health=ObjectHealth.PROGRESSING,
    wait_words=(),
    exhausted_message="No rolling update is in progress",
)
COMPLETE: Final = ConditionOutcome(
    "Complete",
    "AllGroupsComplete",
    "All replicas are complete",
    "all leaders of a LeaderWorkerSet that runs to completion have exited with code 0. Until then, the condition is absent",
    excludes=frozenset({"Available", "Progressing", "UpdateInProgress", "Failed"}),
    health=ObjectHealth.HEALTHY,
    wait_words=("done", "complete"),
    exhausted_message=None,
)
FAILED: Final = ConditionOutcome(
    "Failed",
    "DeadlineExceeded",
    "One or more replicas were not complete at the deadline",
    (
        "the deadline of a LeaderWorkerSet that runs to completion has passed, and its incomplete groups are "
        "terminated. Until then, the condition is absent"
    ),
    excludes=frozenset({"Available", "Progressing", "UpdateInProgress", "Complete"}),
    health=ObjectHealth.DEGRADED,
    wait_words=("failed",),
    exhausted_message=None,
)
DEGRADED: Final = ConditionOutcome(
    "Degraded",
    "ReplicaRestartBudgetExceeded",
    _STOPPED,
    "groups have exhausted their restart budget. Their terminated pods are retained for diagnosis",
    excludes=frozenset(),
    health=ObjectHealth.DEGRADED,
    wait_words=("degraded",),
    exhausted_message=None,
)
WORKLOAD_SCHEDULING_CREATED: Final = ConditionOutcome(
    "WorkloadSchedulingCreated",
    "SchedulingPrerequisitesCreated",
    "scheduling prerequisites created",
    "the objects required by `spec.scheduling` have been created. If the field is not set, the condition is absent",
    excludes=frozenset(),
    health=ObjectHealth.REQUIRED,
    wait_words=(),
    exhausted_message=None,
)
MOVE_IN_PROGRESS: Final = ConditionOutcome(
    "MoveInProgress",
    "GroupsMoving",
    "Groups must be moved from their nodes",
    "groups are waiting to be moved off their nodes. Until the first move, the condition is absent",
    excludes=frozenset(),
    # A group that is moved from a node becomes Progressing by itself. Until then it serves traffic, and a sync must
    # not wait for a drain.
    health=ObjectHealth.NEUTRAL,
    wait_words=(),
    exhausted_message=None,
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
"""All conditions. Tools show the message of the last, most specific condition with the same health status."""

WAIT_WORDS: Final = {word: outcome for outcome in CONDITIONS for word in outcome.wait_words}

NOT_DEGRADED: Final = ("AsExpected", "No replica has exhausted its restart budget")
"""The reason and message of the `DEGRADED` condition if it is False (N-ST-11)."""

NOT_MOVING: Final = ("AsExpected", "No groups need to be moved from their nodes")
"""The reason and message of the `MOVE_IN_PROGRESS` condition after it changes to False."""

FORMER: Final = "RestartsExhausted"
"""A condition of earlier versions that is no longer set."""
