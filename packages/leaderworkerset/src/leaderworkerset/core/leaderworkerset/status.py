"""Builds the status of a LeaderWorkerSet, with counts and conditions (contract section 9).

Input: the LeaderWorkerSet, the leader StatefulSet, the groups and the key of the current revision. Output: the new
status and its changes. All conditions are set in one pass. The Go controller stops after the first change and needs
another pass (R-STAT-13). The final state is the same.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct, structs

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import labels
from leaderworkerset.api.conditions import (
    AVAILABLE,
    COMPLETE,
    CONDITIONS,
    DEGRADED,
    FAILED,
    FORMER,
    NOT_DEGRADED,
    PROGRESSING,
    UPDATE_IN_PROGRESS,
    ConditionOutcome,
)
from leaderworkerset.api.leaderworkerset import Condition, LeaderWorkerSet, LeaderWorkerSetStatus
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.leaderworkerset.groupindex import ALL, GroupIndex, indexes_below

ROWS: Final = {row.type: row for row in CONDITIONS}


class UnknownIndexError(ValueError):
    """The group index of a leader pod is not a number, so that groups cannot be counted (R-STAT-5)."""


class Counts(NamedTuple):
    """The numbers of groups by state (R-STAT-7). "Rolled" groups are between the partition and the replicas.

    `desired_ready` and `rolled_done` include complete groups, which have their desired state.
    """

    ready: int = 0
    updated: int = 0
    desired_ready: int = 0
    rolled: int = 0
    rolled_updated: int = 0
    rolled_done: int = 0
    degraded: int = 0
    desired_degraded: int = 0
    desired_complete: int = 0
    desired_late: int = 0


def count(lws: LeaderWorkerSet, group_summary: GroupIndex, revision: str) -> Counts:
    """Count the complete groups. Raise `UnknownIndexError` if an index is not a number."""
    replicas, size = lws.spec.replicas, lws.spec.leader_worker_template.size
    partition = lws.spec.rollout_strategy.rolling_update_configuration.partition
    desired = indexes_below(group_summary.members, replicas)
    parts = [_count(group_summary, size, revision, desired=desired, kept=indexes_below(desired, partition))]
    for group in group_summary.irregular.values():
        if group.index is None:
            raise UnknownIndexError(
                f"pod {group.leader}: label {labels.GROUP_INDEX} is {group.group_index!r}, not a number"
            )
        alone, is_wanted, is_held = GroupIndex.from_group(group), group.index < replicas, group.index < partition
        parts.append(_count(alone, size, revision, desired=alone.members * is_wanted, kept=alone.members * is_held))
    return Counts(*map(sum, zip(*parts, strict=True)))


def _count(group_summary: GroupIndex, size: int, revision: str, *, desired: int, kept: int) -> Counts:
    """Count all groups, the desired groups, and the desired groups below the partition (R-STAT-6).

    Exhausted groups do not need all parts (N-ST-13).
    """
    complete = group_summary.members if size == 1 else group_summary.with_workers | group_summary.exhausted
    ready = complete & group_summary.leader_ready & (ALL if size == 1 else group_summary.workers_ready)
    updated = complete & group_summary.count_updated(size, revision)
    rolled, good = complete & desired & ~kept, ready | group_summary.complete
    degraded = group_summary.exhausted & ~group_summary.complete & ~group_summary.late
    return Counts(
        ready.bit_count(),
        updated.bit_count(),
        (good & desired).bit_count(),
        rolled.bit_count(),
        (rolled & updated).bit_count(),
        (rolled & updated & good).bit_count(),
        degraded.bit_count(),
        (degraded & desired).bit_count(),
        (group_summary.complete & desired).bit_count(),
        (group_summary.late & desired).bit_count(),
    )


class Assessment(Struct, frozen=True):
    """The new status, its main condition, the event message, and whether all groups are updated and ready."""

    status: LeaderWorkerSetStatus
    outcome: ConditionOutcome
    note: str
    is_update_done: bool

    @property
    def reason(self) -> str:
        """Return the event reason for changed conditions (R-STAT-10, N-ST-12)."""
        return DEGRADED.type if self.outcome is DEGRADED else self.outcome.reason


def assess(
    lws: LeaderWorkerSet,
    statefulset: JSONObject,
    group_summary: GroupIndex,
    revision: str,
    now: datetime,
) -> Assessment:
    """Count the groups and build the status. Raise `UnknownIndexError` if an index is not a number."""
    counts = count(lws, group_summary, revision)
    new = build(lws, statefulset, counts, now)
    outcome = DEGRADED if counts.degraded else current_conditions(lws, counts)[0]
    return Assessment(new, outcome, event_note(lws, new, outcome), is_update_done(lws, counts))


def current_conditions(lws: LeaderWorkerSet, counts: Counts) -> Sequence[ConditionOutcome]:
    """Return the current conditions (R-STAT-8), or none if only exhausted groups are unready (N-ST-12).

    A set is complete when all its groups are complete, and has failed when no group continues and a deadline has
    passed.
    """
    if counts.rolled_updated < counts.rolled:
        return (UPDATE_IN_PROGRESS, PROGRESSING)
    if 0 < counts.desired_complete == lws.spec.replicas:
        return (COMPLETE,)
    if counts.desired_ready == lws.spec.replicas and counts.rolled_done == counts.rolled:
        return (AVAILABLE,)
    over = counts.desired_degraded + counts.desired_late
    if (counts.degraded or over) and counts.desired_ready + over == lws.spec.replicas:
        return (FAILED,) if counts.desired_late else ()
    return (PROGRESSING,)


def is_update_done(lws: LeaderWorkerSet, counts: Counts) -> bool:
    """Return whether all desired groups are updated and ready, and not delayed by a partition (R-STAT-9)."""
    partition = lws.spec.rollout_strategy.rolling_update_configuration.partition
    return partition == 0 and counts.rolled_done == lws.spec.replicas


def build(lws: LeaderWorkerSet, statefulset: JSONObject, counts: Counts, now: datetime) -> LeaderWorkerSetStatus:
    """Build the status from the counts (R-STAT-1, R-STAT-4)."""
    reported = statefulset.get("status") or {}
    sums = StatusCounts(int(reported.get("replicas") or 0), counts.ready, counts.updated)
    return compose(lws, sums, current_conditions(lws, counts), now, is_degraded=counts.degraded > 0)


class StatusCounts(NamedTuple):
    """The numbers of all, ready, and updated groups in the status."""

    replicas: int
    ready: int
    updated: int


def compose(
    lws: LeaderWorkerSet,
    sums: StatusCounts,
    outcomes: Sequence[ConditionOutcome],
    now: datetime,
    *,
    is_degraded: bool = False,
) -> LeaderWorkerSetStatus:
    """Return the status with these counts and conditions. `DEGRADED` is last (R-STAT-12, N-ST-11, N-ST-12).

    If nothing else changes, the condition is not added, so that a manager upgrade does not write the status of idle
    sets (N-AT-18).
    """
    conditions = tuple(
        _without_failure_marker(condition) for condition in lws.status.conditions if condition.type != FORMER
    )
    for outcome in outcomes:
        conditions = set_true(conditions, outcome, lws.metadata.generation, now)
    if is_degraded:
        holding = {outcome.type for outcome in outcomes}
        for row in CONDITIONS:
            if row.exhausted_message is not None and row.type not in holding:
                conditions = _set_false(conditions, row.type, (DEGRADED.reason, row.exhausted_message), now)
        conditions = set_true(conditions, DEGRADED, lws.metadata.generation, now)
    new = _summarize(lws, sums, conditions)
    if is_degraded or (new == lws.status and all(condition.type != DEGRADED.type for condition in conditions)):
        return new
    return _summarize(lws, sums, _set_false(conditions, DEGRADED.type, NOT_DEGRADED, now))


def is_available(status: LeaderWorkerSetStatus) -> bool:
    """Return whether the `AVAILABLE` condition is True."""
    return any(condition.type == AVAILABLE.type and condition.status == "True" for condition in status.conditions)


def _without_failure_marker(condition: Condition) -> Condition:
    """Return the condition without the marker of a failed reconciliation."""
    row = ROWS.get(condition.type)
    if row is None or condition.reason != reconcilefailure.REASON:
        return condition
    return structs.replace(condition, reason=row.reason, message=row.message)


def _summarize(lws: LeaderWorkerSet, sums: StatusCounts, conditions: Sequence[Condition]) -> LeaderWorkerSetStatus:
    return LeaderWorkerSetStatus(
        conditions=tuple(
            structs.replace(condition, observed_generation=lws.metadata.generation) for condition in conditions
        ),
        ready_replicas=sums.ready,
        updated_replicas=sums.updated,
        replicas=sums.replicas,
        hpa_pod_selector=lws.status.hpa_pod_selector or f"{labels.NAME}={lws.name},{labels.WORKER_INDEX}=0",
        observed_generation=lws.metadata.generation,
    )


def set_true(
    conditions: Sequence[Condition], outcome: ConditionOutcome, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Set one condition to True, and mutually exclusive conditions to False (R-STAT-12)."""
    result = []
    for condition in conditions:
        if condition.type == outcome.type:
            is_same = condition.status == "True" and condition.observed_generation == generation
            result.append(condition if is_same else _holding(outcome, generation, now))
        elif condition.type in outcome.excludes and condition.status == "True":
            since = timestamps.render(now)
            result.append(
                structs.replace(condition, status="False", last_transition_time=since, observed_generation=generation)
            )
        else:
            result.append(condition)
    is_known = any(condition.type == outcome.type for condition in result)
    return tuple(result) if is_known else (*result, _holding(outcome, generation, now))


def _holding(outcome: ConditionOutcome, generation: int, now: datetime) -> Condition:
    return Condition(
        type=outcome.type,
        status="True",
        reason=outcome.reason,
        message=outcome.message,
        last_transition_time=timestamps.render(now),
        observed_generation=generation,
    )


def _set_false(
    conditions: Sequence[Condition], kind: str, why: tuple[str, str], now: datetime
) -> tuple[Condition, ...]:
    """Set a condition to False with this reason and message (N-ST-10)."""
    return with_condition(conditions, Condition(type=kind, status="False", reason=why[0], message=why[1]), now)


def with_condition(conditions: Sequence[Condition], new: Condition, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions with `new`. Its last transition time changes only with its status."""
    known = next((condition for condition in conditions if condition.type == new.type), None)
    if known is not None and known.status == new.status:
        new = structs.replace(new, last_transition_time=known.last_transition_time)
    else:
        new = structs.replace(new, last_transition_time=timestamps.render(now))
    return (*conditions, new) if known is None else tuple(new if other is known else other for other in conditions)


def assess_rejected(lws: LeaderWorkerSet, assessment: Assessment | None, now: datetime) -> Assessment:
    """Return the assessment for a rejected object, with the latest generation and without Available."""
    if assessment is None:
        new = compose(lws, StatusCounts(0, 0, 0), (PROGRESSING,), now)
    elif is_available(assessment.status):
        conditions = set_true(assessment.status.conditions, PROGRESSING, lws.metadata.generation, now)
        new = structs.replace(assessment.status, conditions=conditions)
    else:
        return assessment
    return Assessment(new, PROGRESSING, event_note(lws, new, PROGRESSING), is_update_done=False)


def event_note(lws: LeaderWorkerSet, status: LeaderWorkerSetStatus, outcome: ConditionOutcome) -> str:
    """Return the event message for changed conditions (R-STAT-10)."""
    return f"{outcome.message}, with {status.ready_replicas} groups ready of total {lws.spec.replicas} groups"
