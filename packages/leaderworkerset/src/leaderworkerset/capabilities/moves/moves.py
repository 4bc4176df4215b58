"""Selects the groups to move now. A group is moved only if enough other groups are available.

A move deletes the leader of the group, like an update. It is not a failure, so it has no record or delay, and it does
not count as a restart. The decision depends only on existing objects. A move is therefore cancelled if the node is
reopened before the move starts. A group on two closed nodes is moved from both at the same time.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final, TypeVar

from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action, Event, concurrently
from kuberuntime.texts.wording import join_names
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS, NOT_MOVING
from leaderworkerset.api.leaderworkerset import Condition, LeaderWorkerSet
from leaderworkerset.capabilities import names
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import budget, deploymentleaders, outdatedleaders
from leaderworkerset.core.leaderworkerset.decision import LeaderDecision, SetFacts, delete_leader
from leaderworkerset.core.leaderworkerset.deploymentleaders import Leaders
from leaderworkerset.core.leaderworkerset.groupindex import (
    GroupIndex,
    descending_indexes,
    indexes_below,
    regular_indexes,
)
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.status import Assessment, with_condition

Group = TypeVar("Group")

NODES_NAMED: Final = 5
"""The maximum number of node names in an event."""

Leaving = Mapping[str, Collection[str]]
"""The leaders of groups that use nodes under maintenance, and the names of these nodes."""


def choose_groups(waiting: Iterable[Group], available: Collection[Group], least: int) -> list[Group]:
    """Return the groups to move, in order, so that at least `least` groups remain available.

    Unavailable groups are first, because their move does not reduce availability.

    >>> choose_groups([3, 2, 1], {0, 2, 3}, least=2), choose_groups(["a", "b"], {"a", "b"}, least=2)
    ([1, 3], [])
    """
    broken, complete = list[Group](), list[Group]()
    for group in waiting:
        (complete if group in available else broken).append(group)
    return [*broken, *complete[: max(len(available) - least, 0)]]


def with_moving_groups(facts: SetFacts, group_summary: GroupIndex) -> GroupIndex:
    """Return the group summary with the desired groups on closed nodes that are neither terminating nor exhausted."""
    leaving = _find_leaving_groups(facts)
    if not leaving:
        return group_summary
    known, name = facts.observed.groups, facts.lws.name
    indexes = regular_indexes([known[leader] for leader in leaving if leader in known], name, group_summary)
    return replace(
        group_summary,
        moving=indexes_below(indexes & ~group_summary.deleting & ~group_summary.exhausted, facts.lws.spec.replicas),
    )


def decide(facts: SetFacts, leaders: LeaderDecision, now: datetime) -> LeaderDecision:
    """Delete the leaders of groups to move, unless a different step deletes leaders, and report the groups."""
    leaving = _find_leaving_groups(facts)
    group_summary = None if leaders.rollout is None else leaders.rollout.group_summary
    groups = _groups_to_move(facts, group_summary) if leaving else {}
    if groups and leaders.leaves_groups_unchanged and _is_rolled_out(facts, group_summary):
        moved = _select_groups(facts, group_summary, groups)
        leaders = replace(leaders, actions=(*leaders.actions, *_move(facts, [groups[name] for name in moved])))
    if leaders.assessment is None or not (groups or _has_moved(facts.lws)):
        return leaders
    waiting = {name: leaving[name] for name in groups}
    return replace(leaders, assessment=with_moves(leaders.assessment, facts.lws, waiting, now))


def deletes_leaders(facts: SetFacts) -> bool:
    """Return whether a leader can be deleted for a move now, unless a different step changes leaders."""
    if not _find_leaving_groups(facts):
        return False
    group_summary = None if facts.is_hash else facts.group_summary
    groups = _groups_to_move(facts, group_summary)
    return bool(groups) and _is_rolled_out(facts, group_summary) and bool(_select_groups(facts, group_summary, groups))


def _find_leaving_groups(facts: SetFacts) -> Leaving:
    leaving: Leaving = facts.observed.facts.get(names.MOVES, {})
    return leaving


def _has_moved(lws: LeaderWorkerSet) -> bool:
    return any(condition.type == MOVE_IN_PROGRESS.type for condition in lws.status.conditions)


def _groups_to_move(facts: SetFacts, group_summary: GroupIndex | None) -> Mapping[str, GroupFacts]:
    """Return the leaders of groups that must be moved from nodes, in order."""
    if group_summary is None:
        leaving = _find_leaving_groups(facts)
        groups = {
            group.leader: group for group in facts.observed.groups.values() if _stays(group) and group.leader in leaving
        }
        return dict(sorted(groups.items()))
    names = (f"{facts.lws.name}-{index}" for index in descending_indexes(group_summary.moving))
    return {name: facts.observed.groups[name] for name in names}


def _stays(group: GroupFacts) -> bool:
    return not group.is_deleting and not group.is_exhausted


def _is_rolled_out(facts: SetFacts, group_summary: GroupIndex | None) -> bool:
    """Return whether the leader workload is not currently replacing leaders."""
    if facts.leader_workload is None:
        return False
    if group_summary is not None:
        return not outdatedleaders.is_rolling(facts.leader_workload, group_summary)
    groups, key = facts.observed.groups.values(), facts.revision.key
    return deploymentleaders.is_current(Leaders(facts.leader_workload, groups, key, has_older=False))


def _select_groups(facts: SetFacts, group_summary: GroupIndex | None, groups: Mapping[str, GroupFacts]) -> list[str]:
    limits = budget.read(facts.lws.spec)
    return choose_groups(groups, _available_groups(facts, group_summary), limits.replicas - limits.unavailable)


def _available_groups(facts: SetFacts, group_summary: GroupIndex | None) -> frozenset[str]:
    if group_summary is None:
        return frozenset(
            group.leader for group in facts.observed.groups.values() if _stays(group) and group.is_leader_ready
        )
    living = (
        0 if facts.leader_workload is None else outdatedleaders.retained_groups(facts.leader_workload, group_summary)
    )
    available = descending_indexes(living & group_summary.available_groups(facts.lws.size))
    return frozenset(f"{facts.lws.name}-{index}" for index in available)


def _move(facts: SetFacts, groups: Iterable[GroupFacts]) -> tuple[Action, ...]:
    leaving = _find_leaving_groups(facts)
    return concurrently(
        delete_leader(facts, group, moving_group_event(facts.obj, group.leader, leaving[group.leader]))
        for group in groups
    )


def with_moves(assessment: Assessment, lws: LeaderWorkerSet, waiting: Leaving, now: datetime) -> Assessment:
    """Return the assessment with the condition that reports the groups to move (docs/adr/0023-moves.md).

    The condition is absent until a group must be moved for the first time, True while any group must be moved, and
    False after that. `waiting` contains the leaders of such groups, and their nodes.
    """
    conditions = assessment.status.conditions
    known = next((condition for condition in conditions if condition.type == MOVE_IN_PROGRESS.type), None)
    is_moving = known is not None and known.status == "True"
    if not waiting and not is_moving:
        return assessment
    nodes = format_nodes({node for names in waiting.values() for node in names})
    message = f"{MOVE_IN_PROGRESS.message}: {nodes}"
    reason, text = (MOVE_IN_PROGRESS.reason, message) if waiting else NOT_MOVING
    new = Condition(
        type=MOVE_IN_PROGRESS.type,
        status="True" if waiting else "False",
        reason=reason,
        message=text,
        observed_generation=lws.metadata.generation,
    )
    assessed = replace(assessment, status=replace(assessment.status, conditions=with_condition(conditions, new, now)))
    return replace(assessed, outcome=MOVE_IN_PROGRESS, note=message) if waiting and not is_moving else assessed


def moving_group_event(obj: JSONObject, leader: str, nodes: Collection[str]) -> Event:
    """Return the event for a leader that was deleted because of node maintenance (docs/adr/0023)."""
    note = f"Deleted leader pod {leader} to move its group from {format_nodes(nodes)}"
    return Event("Normal", decisionevents.MOVING_GROUP, "Delete", note, decisionevents.reference(obj))


def format_nodes(nodes: Collection[str]) -> str:
    """Return the first node names and the number of other nodes, because a group can have hundreds of nodes.

    >>> format_nodes({"b", "a"}), format_nodes([f"n{index}" for index in range(9)])
    ('a, b', 'n0, n1, n2, n3, n4 and 4 more')
    """
    return join_names(sorted(nodes), NODES_NAMED)
