"""Maintains a PodDisruptionBudget for each group, and opens groups for evictions up to the disruption limit.

Input: the LeaderWorkerSet, its leaders and its budgets. Output: a plan that creates the budgets of existing groups,
closes and opens them (`evictablegroups.py`), and deletes the budgets of deleted groups.

Pods of starting groups are marked, so that autoscalers do not evict them until the group is complete. A mark is
removed after an hour, because the group might never be complete. Only marks of this controller are removed. A pod
whose template has one of the annotations is never changed.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from math import inf
from typing import Final, NamedTuple

from msgspec import Struct

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.placement import read_tolerations, repelling_taints, tolerate_all
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS, PODS
from kuberuntime.plan import Action, Patch, Plan, concurrently, flatten, guarded_delete, identified_patch
from leaderworkerset.api import groupname, labels, recreationrecord
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, decode
from leaderworkerset.capabilities.disruption import disruptionsettings, evictablegroups, groupbudget
from leaderworkerset.capabilities.disruption.disruptionsettings import STARTING, DisruptionSettings
from leaderworkerset.capabilities.disruption.groupbudget import ProtectedGroup
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset.groupstate import original_size
from leaderworkerset.core.policies import condemned


class ObservedDisruption(Struct, frozen=True, kw_only=True):
    """A LeaderWorkerSet with its leader pods and budgets.

    `groups_to_move` are the labels of groups with a pod on a closed node. `records` are recreation records. `is_draining` is
    true if a node is cordoned. `pods` are all pods, which are needed only if a pod is marked or must be marked.
    """

    obj: JSONObject
    leaders: Sequence[JSONObject]
    budgets: Sequence[JSONObject]
    groups_to_move: Collection[str]
    now: datetime
    pods: Sequence[JSONObject] = ()
    records: Sequence[JSONObject] = ()
    is_draining: bool = False


class GroupPresence(NamedTuple):
    """The leader of a group, and whether the group must be protected."""

    leader: JSONObject | None
    is_present: bool


ABSENT: Final = GroupPresence(None, is_present=False)

MAY_BE_EVICTED: Final = decisionevents.EventKind("Normal", "GroupMayBeEvicted", "Update")
"""A budget was opened because one of the group's nodes is being drained."""


def reconcile(observed: ObservedDisruption, configured: DisruptionSettings) -> Plan:
    """Return the required writes. A different controller reports invalid LeaderWorkerSets."""
    obj = observed.obj
    own = [budget for budget in observed.budgets if meta.is_controlled(budget, obj) and not meta.is_deleting(budget)]
    if meta.is_deleting(obj):
        return Plan()
    try:
        lws = decode(obj)
        limit = disruptionsettings.limit(configured, lws.metadata.annotations, lws.spec)
    except ValueError:
        return Plan()
    if limit is None:
        unmarked, _ = eviction_mark_patches({}, observed.pods, (), observed.now)
        return Plan(concurrently([*(guarded_delete(POD_DISRUPTION_BUDGETS, owned) for owned in own), *unmarked]))
    by_label = {groupname.group_label(owned): owned for owned in own}
    edited = {label for label, owned in by_label.items() if not groupbudget.is_unmodified(obj, label, owned)}
    groups = _protected_groups(
        observed, lws, {label: owned for label, owned in by_label.items() if label not in edited}
    )
    known = {group.label: group for group in groups}
    budget = evictablegroups.Allowance(limit=limit, missing=max(lws.spec.replicas - len(groups), 0))
    decision = evictablegroups.decide(groups, budget, configured, observed.now)
    gone = [owned for label, owned in by_label.items() if label not in known or label in edited]
    writes: list[Action] = [guarded_delete(POD_DISRUPTION_BUDGETS, owned) for owned in gone]
    writes += [groupbudget.create(obj, group) for group in groups if group.label not in by_label]
    writes += _budget_patches(obj, groups, decision)
    complete_groups = {group.label for group in groups if group.is_complete}
    marked, ends = eviction_mark_patches(obj, observed.pods, complete_groups, observed.now)
    again = min((delay for delay in (decision.requeue_after, ends) if delay is not None), default=None)
    return Plan(concurrently([*writes, *marked]), again)


def allows_evictions(plan: Plan) -> bool:
    """Return whether a plan allows evictions of pods that are currently protected."""
    return any(
        isinstance(action, Patch)
        and action.resource == POD_DISRUPTION_BUDGETS
        and action.patch["spec"]["minAvailable"] == groupbudget.OPEN
        for action in flatten(plan.actions)
    )


def _protected_groups(
    observed: ObservedDisruption, lws: LeaderWorkerSet, budgets: Mapping[str, JSONObject]
) -> Sequence[ProtectedGroup]:
    leaders = _leaders(observed)
    labels = [label for label in leaders if groupbudget.can_have_budget(observed.obj, label)]
    if not lws.spec.group_identity.is_hash:
        labels += [label for label in budgets if label not in leaders and _is_index(label, lws.spec.replicas)]
    return [_describe(label, leaders.get(label, ABSENT), lws, observed, budgets.get(label)) for label in labels]


def _describe(
    label: str, present: GroupPresence, lws: LeaderWorkerSet, observed: ObservedDisruption, budget: JSONObject | None
) -> ProtectedGroup:
    leader = present.leader
    size = (0 if leader is None else original_size(leader)) or lws.size
    return ProtectedGroup(
        label=label,
        size=size,
        min_available=max(size, lws.size),
        is_present=present.is_present,
        must_move=label in observed.groups_to_move,
        budget=budget,
        age=(observed.now - _creation_time(leader, observed.now)).total_seconds()
        if leader and observed.is_draining
        else inf,
    )


def _budget_patches(
    obj: JSONObject, groups: Sequence[ProtectedGroup], decision: evictablegroups.EvictableGroups
) -> list[Patch]:
    """Return the writes to existing budgets. A budget for a previous group size is closed with the new size."""
    changing = {group.label for group in (*decision.to_close, *decision.to_open)}
    inexact = [group for group in groups if not group.has_expected_min_available and group.label not in changing]
    closed = [*decision.to_close, *inexact]
    writes = [
        groupbudget.set_min_available(group.budget, group.min_available) for group in closed if group.budget is not None
    ]
    for group in decision.to_open:
        if group.budget is not None:
            note = f"Group {group.label} can be evicted because one of its nodes is being drained"
            events = (MAY_BE_EVICTED(obj, note),) if group.must_move else ()
            writes.append(groupbudget.set_min_available(group.budget, groupbudget.OPEN, events))
    return writes


def _is_index(label: str, replicas: int) -> bool:
    index = decimals.natural(label)
    return index is not None and index < replicas


def _leaders(observed: ObservedDisruption) -> dict[str, GroupPresence]:
    """Return the leaders by group label. If two leaders have the same label, return the leader that will remain."""
    records = {recreationrecord.leader_of(record): record for record in observed.records}
    described = [
        GroupPresence(leader, is_present=not _is_unprotected(leader, observed.obj, records.get(meta.name(leader))))
        for leader in observed.leaders
    ]
    return {
        groupname.group_label(each.leader or {}): each for each in sorted(described, key=lambda each: each.is_present)
    }


def _is_unprotected(leader: JSONObject, obj: JSONObject, record: JSONObject | None) -> bool:
    """Return whether a group is not protected, because it is terminating or must be recreated."""
    ends = meta.is_deleting(leader) or groupname.is_exhausted(leader)
    return ends or condemned.is_condemned(obj, leader, None, record, ())


LONGEST: Final = timedelta(hours=1)

FOREIGN: Final = {labels.SAFE_TO_EVICT: "false", labels.KARPENTER_DO_NOT_DISRUPT: "true"}
"""The annotations that Cluster Autoscaler and Karpenter read."""


def eviction_mark_patches(
    obj: JSONObject, pods: Sequence[JSONObject], complete_groups: Collection[str], now: datetime
) -> tuple[Sequence[Patch], float | None]:
    """Return the required patches, and the seconds until the first mark expires. Without marks, the time is None."""
    is_wanted = meta.annotations(obj).get(labels.DO_NOT_DISRUPT) == STARTING
    patches: list[Patch] = []
    ends: list[float] = []
    for pod in pods:
        left = (_creation_time(pod, now) + LONGEST - now).total_seconds()
        starts = (
            is_wanted and groupname.group_label(pod) not in complete_groups and left > 0 and not meta.is_deleting(pod)
        )
        annotations = meta.annotations(pod)
        if starts and not FOREIGN.keys() & annotations.keys():
            patches.append(_patch(pod, {**FOREIGN, labels.MARKED_STARTING: "true"}))
        elif not starts and labels.MARKED_STARTING in annotations and not meta.is_deleting(pod):
            patches.append(_patch(pod, dict.fromkeys((*FOREIGN, labels.MARKED_STARTING))))
        if starts:
            ends.append(left)
    return patches, min(ends, default=None)


def _creation_time(pod: JSONObject, now: datetime) -> datetime:
    text = meta.creation_timestamp(pod)
    return timestamps.parse(text) if text else now


def _patch(pod: JSONObject, annotations: JSONObject) -> Patch:
    return identified_patch(PODS, pod, {"metadata": {"annotations": annotations}}, if_present=True)


def is_closed(node: JSONObject) -> bool:
    """Return whether a node rejects some or all pods."""
    return bool(repelling_taints(meta.spec(node)))


def is_cordoned(node: JSONObject) -> bool:
    """Return whether a node is cordoned, for example by `kubectl drain`."""
    return bool(meta.spec(node).get("unschedulable"))


def rejects_pod(node: JSONObject, pod: JSONObject) -> bool:
    """Return whether a closed node would reject the pod if it were rescheduled."""
    return is_cordoned(node) or not tolerate_all(read_tolerations(meta.spec(pod)), repelling_taints(meta.spec(node)))
