"""Determines the groups that must be moved, and why the manager would not move a group. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from kuberuntime.objects import meta, placement
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.decisions.nodemaintenance import MOVES_OFF, TAINTS_OF_KUBERNETES, must_be_moved
from leaderworkerset.decisions.rolloutsteps import read_rollout_budget
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View

Closed: TypeAlias = Mapping[str, tuple[JSONObject, ...]]
"""The taints that repel groups by node name."""

NEVER: Final = "maxUnavailable is 0, and with random keys only updates create extra groups"
HELD: Final = "maxUnavailable is 0, and extra groups are not created while a partition is set"


def is_moving(view: View) -> bool:
    """Return whether groups must be moved according to the manager, which requires that maintenance is enabled."""
    return meta.is_condition_true(view.object, MOVE_IN_PROGRESS.type)


def closed_nodes(nodes: Mapping[str, JSONObject]) -> Closed:
    """Return cordons and all repelling taints, because the taint key of the manager is unknown."""
    taints_by_node = {name: tuple(_closing_taints(meta.spec(node))) for name, node in nodes.items()}
    return {name: taints for name, taints in taints_by_node.items() if taints}


def _closing_taints(spec: JSONObject) -> Iterator[JSONObject]:
    if spec.get("unschedulable"):
        yield placement.CORDONED
    for taint in spec.get("taints") or []:
        if taint.get("effect") in placement.REPELLING and not str(taint.get("key")).startswith(TAINTS_OF_KUBERNETES):
            yield taint


def nodes_to_leave(group: Group, nodes: Closed) -> frozenset[str]:
    """Return the nodes from which a group must be moved. Exhausted and complete groups are not moved."""
    if group.is_over:
        return frozenset()
    return frozenset(
        rank.node
        for rank in group.ranks
        if rank.object is not None and rank.node in nodes and must_be_moved(rank.object, nodes[rank.node])
    )


def is_marked(group: Group) -> bool:
    """Return whether a user requested that a group is moved, regardless of its nodes."""
    leader = group.leader.object if group.leader else None
    return leader is not None and not meta.is_deleting(leader) and labels.MOVE_GROUP in meta.annotations(leader)


def move_obstacle(lws: JSONObject) -> str:
    """Return the reason why available groups of a LeaderWorkerSet cannot be moved.

    Return an empty string if groups are moved, or the LeaderWorkerSet is invalid.
    """
    try:
        limits = read_rollout_budget(decode(lws).spec)
    except ValueError:
        return ""
    if limits.unavailable:
        return ""
    if groupname.uses_random_keys(lws):
        return NEVER
    return HELD if limits.partition else ""


def rejection(lws: JSONObject) -> str:
    """Return the field that keeps groups on closed nodes, or an empty string if no such field is set."""
    if meta.annotations(lws).get(labels.MOVE_OFF_CLOSED_NODES) == MOVES_OFF:
        return f"its annotation {labels.MOVE_OFF_CLOSED_NODES} is {MOVES_OFF}"
    return move_obstacle(lws)
