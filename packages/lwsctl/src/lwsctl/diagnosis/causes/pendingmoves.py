"""Finds groups that wait to be moved to other nodes, or cannot be moved. Pure."""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.resources import NODES
from kuberuntime.texts.masking import mask_message
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS
from lwsctl.diagnosis import groupmoves
from lwsctl.diagnosis.causes.rollouts import allowed_unavailable
from lwsctl.diagnosis.causes.unreconciled import set_subject
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.groups import Group
from lwsctl.model.health import Verdict
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count, format_groups, join_names

NAMED: Final = 5


@cause(
    code="LWS-E095",
    title="groups cannot be moved off their nodes",
    meaning="The manager is waiting to move groups, but maxUnavailable is 0. It cannot create additional groups, because the groups have random keys or a partition is set.",
    remedy="Set maxUnavailable to at least 1, or restart the groups one by one.",
)
def find_blocked_move(observed: Observed) -> Finding | None:
    """Find groups that must be moved but must not become unavailable."""
    view, why = observed.view, groupmoves.move_obstacle(observed.view.object)
    if not groupmoves.is_moving(view) or not why or not (waiting := _waiting_groups(observed)):
        return None
    field = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable"
    return Finding(
        subject=set_subject(observed),
        sentence=f"{_describe_groups(observed, waiting, 'is', 'are')} never moved: {why}",
        evidence=(_reported_reason(view),),
        steps=(
            f"set {field} to 1 or more, and apply the manifest",
            f"or restart the group now: {observed.lws(f'restart {view.name}/{waiting[0].name}')}",
        ),
    )


@cause(
    code="LWS-E094",
    title="groups are waiting to be moved",
    meaning="The manager is waiting to move groups off nodes that are cordoned or have a maintenance taint. It moves all pods of a group together, and no more groups at a time than the rollout strategy permits.",
    remedy="Wait, or find out why other groups are unavailable. To cancel moves that have not started, run `kubectl uncordon`.",
    verdict=Verdict.PROGRESSING,
)
def find_pending_move(observed: Observed) -> Finding | None:
    """Find groups that wait to be moved, and report the reason."""
    view = observed.view
    if not groupmoves.is_moving(view) or not (waiting := _waiting_groups(observed)):
        return None
    unready = [group for group in view.groups if not group.is_ready and group.index < view.desired]
    steps = [observed.lws(f"events {view.name}")]
    allowed = allowed_unavailable(view)
    if view.is_updating:
        waits = "until the rollout replaces them"
    elif (missing := max(len(unready), view.desired - view.ready)) and missing >= allowed:
        # if one group is explained, the view does not contain other groups
        others = format_groups([group.name for group in unready[:NAMED]]) if unready else "another group"
        waits = f"waiting for {others} to be ready"
        steps.insert(0, observed.lws(f"explain {view.name}{f'/{unready[0].name}' if unready else ''}"))
    else:
        waits = f"{format_count(allowed, 'group')} at a time" if allowed else "after extra groups are ready"
    return Finding(
        subject=set_subject(observed),
        sentence=f"{_describe_groups(observed, waiting, 'waits', 'wait')} to be moved ({waits})",
        evidence=(_reported_reason(view),),
        steps=tuple(steps),
    )


def _waiting_groups(observed: Observed) -> list[Group]:
    """Return the waiting groups.

    If nodes are unknown, return all groups, because the manager reports a pending move.
    """
    nodes, groups = groupmoves.closed_nodes(observed.nodes), observed.view.groups
    leaving_groups = [
        group for group in groups if groupmoves.is_marked(group) or groupmoves.nodes_to_leave(group, nodes)
    ]
    return leaving_groups if leaving_groups or observed.was_read(NODES) else list(groups)


def _describe_groups(observed: Observed, waiting: list[Group], singular: str, plural: str) -> str:
    """Return the groups, their nodes, and a verb in the singular or plural."""
    view, nodes = observed.view, groupmoves.closed_nodes(observed.nodes)
    node_names = sorted({node for group in waiting for node in groupmoves.nodes_to_leave(group, nodes)})
    if not node_names and not any(map(groupmoves.is_marked, waiting)):
        return f"at least one group of {view.name} {singular}"
    where = f" on closed node{'s' if len(node_names) > 1 else ''} {join_names(node_names, NAMED)}" if node_names else ""
    return f"{format_groups([group.name for group in waiting])} of {view.name}{where} {singular if len(waiting) == 1 else plural}"


def _reported_reason(view: View) -> str:
    condition = meta.find_condition(view.object, MOVE_IN_PROGRESS.type) or {}
    return f"condition {MOVE_IN_PROGRESS.type}: {mask_message(condition.get('message') or '')}"
