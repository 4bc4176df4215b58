"""Moves groups off nodes under maintenance: deletes leaders, one budget of the rollout at a time.

In: a LeaderWorkerSet and its groups, each with the nodes it must leave. Out: a plan. Nothing is stored: a group that must
leave two nodes moves once, one whose node is open again does not move, and a moved one is not on such nodes any more.
A move is no failure: it has no record of a recreation, so it waits for none and uses none up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Delete, Plan
from leaderworkerset.api import groupname
from leaderworkerset.api.conditions import UPDATE_IN_PROGRESS
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, decode
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import budget
from leaderworkerset.core.leaderworkerset.groupfacts import describe
from leaderworkerset.core.maintenance import movesettings
from leaderworkerset.core.maintenance.movesettings import MoveSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class MovableGroup:
    """A leader, the StatefulSet of its workers, how many pods stay for now, and the nodes that some of them must leave."""

    leader: JSONObject
    workers: JSONObject | None
    pods: int
    off: tuple[str, ...] = ()

    def is_ready(self, lws: LeaderWorkerSet) -> bool:
        """Return whether all pods are there and ready, as far as the leader and the StatefulSet say."""
        facts = describe(self.leader, self.workers)
        size = facts.own_size or lws.size
        has_workers = size == 1 or (facts.workers is not None and facts.workers.is_ready)
        return facts.is_leader_ready and not facts.is_deleting and has_workers and self.pods >= size


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMoves:
    """A LeaderWorkerSet and all of its groups."""

    obj: JSONObject
    groups: Sequence[MovableGroup]


def reconcile(observed: ObservedMoves, configured: MoveSettings) -> Plan:
    """Return the moves that are due; nothing for a LeaderWorkerSet that cannot be read, which others report."""
    if meta.is_deleting(observed.obj):
        return Plan()
    try:
        lws = decode(observed.obj)
        limit = max(budget.read(lws.spec).unavailable, 1)
    except ValueError:
        return Plan()
    if not movesettings.is_on(configured, lws.annotations) or _would_return(observed.obj):
        return Plan()
    if meta.is_condition_true(observed.obj, UPDATE_IN_PROGRESS.type):
        return Plan()  # the rollout takes groups away within the same budget; what it leaves moves after it
    return Plan(tuple(_move(observed.obj, group) for group in _due(observed.groups, lws, limit)))


def _due(groups: Sequence[MovableGroup], lws: LeaderWorkerSet, limit: int) -> Sequence[MovableGroup]:
    """Return the groups to move now: those that are away already, and others as long as fewer are away than may be."""
    lasting = [group for group in groups if groupname.end_of(group.leader) is None]
    ended = len(groups) - len(lasting)
    ready = [group for group in lasting if group.is_ready(lws)]
    away = len(lasting) - len(ready) + max(lws.spec.replicas - ended - len(lasting), 0)
    waiting = sorted((group for group in lasting if _may_move(group)), key=_order)
    first = [group for group in waiting if group not in ready]
    return [*first, *[group for group in waiting if group in ready][: max(limit - away, 0)]]


def _may_move(group: MovableGroup) -> bool:
    return bool(group.off) and not meta.is_deleting(group.leader) and not groupname.is_exhausted(group.leader)


def _order(group: MovableGroup) -> tuple[int, str]:
    label = groupname.label(group.leader)
    return len(label), label


def _would_return(obj: JSONObject) -> bool:
    """Return whether a template names a node: a moved pod would be on it again."""
    template = meta.spec(obj).get("leaderWorkerTemplate") or {}
    found = (template.get("leaderTemplate"), template.get("workerTemplate"))
    return any(meta.spec(one).get("nodeName") for one in found if one)


def _move(obj: JSONObject, group: MovableGroup) -> Delete:
    """Delete the leader, and with it the group, as a recreation does it."""
    return Delete(
        resource=PODS,
        key=meta.key(group.leader),
        propagation="Foreground",
        uid=meta.uid(group.leader),
        on_success=(decisionevents.moving_group(obj, group.leader, group.off),),
    )
