"""Builds the DisaggregatedSet status, with role counts and conditions (R-DS-92 to R-DS-95).

The conditions are Available and Progressing.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, structs

from kuberuntime.objects import timestamps
from leaderworkerset.api.conditions import ObjectHealth
from leaderworkerset.api.disaggregatedset import DisaggregatedSet, DisaggregatedSetStatus, RoleStatus
from leaderworkerset.api.leaderworkerset import Condition
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.disaggregatedset import roletargets
from leaderworkerset.core.disaggregatedset.childsets import RolePart
from leaderworkerset.core.disaggregatedset.roletargets import Scalers


class ConditionPair(Struct, frozen=True):
    """The resulting conditions, one of which is True and the other False, with reason and message."""

    type: str
    opposite: str
    reason: str
    message: str
    health: ObjectHealth


AVAILABLE: Final = ConditionPair(
    "Available",
    "Progressing",
    "AllRolesReady",
    "All desired groups of all roles are ready and have the latest revision",
    ObjectHealth.HEALTHY,
)
PROGRESSING: Final = ConditionPair(
    "Progressing",
    "Available",
    "RolloutInProgress",
    "At least one desired group of a role is not ready, or does not have the latest revision",
    ObjectHealth.PROGRESSING,
)
CONDITIONS: Final = (AVAILABLE, PROGRESSING)


def build(
    disaggregated_set: DisaggregatedSet, parts: Sequence[RolePart], revision: str, scalers: Scalers, now: datetime
) -> DisaggregatedSetStatus:
    """Build the status of the DisaggregatedSet."""
    counts = tuple(_role_status(role.name, parts, revision) for role in disaggregated_set.roles)
    outcome = AVAILABLE if _is_available(disaggregated_set, counts, scalers) else PROGRESSING
    before = () if disaggregated_set.status is None else disaggregated_set.status.conditions or ()
    return DisaggregatedSetStatus(
        observed_generation=disaggregated_set.generation,
        role_statuses=counts,
        conditions=conditions(before, outcome, disaggregated_set.generation, now),
    )


def conditions(
    before: Sequence[Condition], outcome: ConditionPair, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Set one condition of the pair to True, and the other condition to False if it exists (R-DS-94).

    Unlike for LeaderWorkerSets (R-STAT-12), a condition that becomes False retains its reason, and a new generation
    counts as a transition.
    """
    moment = timestamps.render(now)
    condition = Condition(
        type=outcome.type,
        status="True",
        reason=outcome.reason,
        message=outcome.message,
        last_transition_time=moment,
        observed_generation=generation,
    )
    result = []
    for earlier in before:
        if earlier.type == outcome.type:
            is_same = earlier.status == "True"
            result.append(
                structs.replace(condition, last_transition_time=earlier.last_transition_time) if is_same else condition
            )
        elif earlier.type == outcome.opposite and earlier.status == "True":
            result.append(structs.replace(condition, type=earlier.type, status="False"))
        elif earlier.type == outcome.opposite and earlier.reason == reconcilefailure.REASON:
            since = earlier.last_transition_time
            result.append(structs.replace(condition, type=earlier.type, status="False", last_transition_time=since))
        elif earlier.type == outcome.opposite:
            result.append(structs.replace(earlier, observed_generation=generation))
        else:
            result.append(earlier)
    return tuple(result) if any(present.type == outcome.type for present in result) else (*result, condition)


def _role_status(role: str, parts: Sequence[RolePart], revision: str) -> RoleStatus:
    own = [part for part in parts if part.role == role]
    return RoleStatus(
        name=role,
        replicas=sum(part.created_replicas for part in own),
        ready_replicas=sum(part.ready_replicas for part in own),
        updated_replicas=sum(part.updated_replicas for part in own if part.revision == revision),
    )


def _is_available(disaggregated_set: DisaggregatedSet, counts: Sequence[RoleStatus], scalers: Scalers) -> bool:
    """Return whether every role has exactly the desired number of groups (R-DS-93)."""
    for role, count in zip(disaggregated_set.roles, counts, strict=True):
        if role.is_external and role.name not in scalers:
            return False
        desired = roletargets.target_replicas(role, scalers, 0) * disaggregated_set.slices
        if not count.replicas == count.ready_replicas == count.updated_replicas == desired:
            return False
    return True
