"""Interprets `spec.scheduling` as the active level and the parts that are scheduled together (N-API-13 to N-API-15).

Input: a LeaderWorkerSet. Output: one `SchedulingPart` for each template of its Workload. The fields that are set determine the
level, which is never written to the spec. Pod templates contain it in an annotation, so that admission does not read
other objects.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.schedulinglevels import ReplicaScheduling, RoleScheduling, Scheduling

PATH: Final = "spec.scheduling"
API: Final = "scheduling.k8s.io/v1beta1"


class SchedulingLevel(StrEnum):
    """The scope of group scheduling. The values are used in annotations and labels."""

    WHOLE = "lws"
    REPLICA = "replica"
    ROLE = "role"


LevelFields: TypeAlias = Scheduling | ReplicaScheduling | RoleScheduling
"""The three common fields of all levels."""


class SchedulingPart(Struct, frozen=True):
    """The pods that are scheduled together, with the template name and path, and the number of pods in a gang.

    `min_count` is None if pods are scheduled individually.
    """

    name: str
    path: str
    fields: LevelFields
    min_count: int | None

    @property
    def role(self) -> str:
        """Return the role of the pods, or an empty string for both roles."""
        return self.name if self.name in (labels.LEADER, labels.WORKER) else ""


def active_levels(scheduling: Scheduling) -> list[SchedulingLevel]:
    """Return the configured levels in order. Exactly one level is valid."""
    replica = scheduling.replica
    levels = [SchedulingLevel.WHOLE] if _is_set(scheduling) else []
    if replica is not None:
        has_roles = replica.leader is not None or replica.worker is not None
        levels += [SchedulingLevel.REPLICA] if _is_set(replica) or not has_roles else []
        levels += [SchedulingLevel.ROLE] if has_roles else []
    return levels or [SchedulingLevel.REPLICA]


def _is_set(fields: LevelFields) -> bool:
    return (fields.scheduling_policy, fields.scheduling_constraints, fields.disruption_mode) != (None, None, None)


def active_level(scheduling: Scheduling) -> SchedulingLevel:
    """Return the active level or, if there are several, the widest level."""
    return active_levels(scheduling)[0]


def level_count_error(levels: Sequence[SchedulingLevel]) -> str:
    """Return the error message if there is not exactly one active level (N-SCH-VAL-9)."""
    return f"exactly one active scheduling level is required, got [{' '.join(levels)}]"


def unavailable_error(kind: str) -> str:
    """Return the error message for a kind that the API server does not serve (N-SCH-VAL-6)."""
    return f'{API} {kind} API is not available: no matches for kind "{kind}" in version "{API}"'


def scheduling_parts(lws: LeaderWorkerSet, scheduling: Scheduling) -> Sequence[SchedulingPart]:
    """Return the parts of the active level."""
    replica = scheduling.replica or ReplicaScheduling()
    size, level = lws.size, active_level(scheduling)
    match level:
        case SchedulingLevel.WHOLE:
            policy = scheduling.scheduling_policy
            is_gang = policy is not None and policy.gang is not None
            return (SchedulingPart("lws", PATH, scheduling, max(lws.spec.replicas * size, 1) if is_gang else None),)
        case SchedulingLevel.REPLICA:
            policy = replica.scheduling_policy
            is_gang = policy is None or policy.gang is not None
            return (SchedulingPart("replica", f"{PATH}.replica", replica, size if is_gang else None),)
        case SchedulingLevel.ROLE:
            roles = ((labels.LEADER, replica.leader, 1), (labels.WORKER, replica.worker, size - 1))
            return tuple(_role_part(name, fields or RoleScheduling(), count) for name, fields, count in roles)
        case _:
            assert_never(level)


def _role_part(name: str, fields: RoleScheduling, count: int) -> SchedulingPart:
    policy = fields.scheduling_policy
    is_gang = policy is not None and policy.gang is not None
    return SchedulingPart(name, f"{PATH}.replica.{name}", fields, count if is_gang else None)
