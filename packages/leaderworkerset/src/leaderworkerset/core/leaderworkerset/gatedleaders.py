"""Delays new leaders while other groups terminate (contract section 6, docs/adr/0017).

Leaders with random keys are created with a scheduling gate. This module processes all gated leaders of a
LeaderWorkerSet, oldest first. If the policy is `Immediate`, all leaders are admitted. If it is `PostTermination`,
some leaders wait, so that existing and terminating groups together never exceed the maximum of the set.

| a gated leader | is admitted |
|---|---|
| of another revision than the Deployment's | never: the Deployment deletes it |
| beyond `spec.replicas` of its revision | once another leader is deleted; an exhausted group takes a place (N-RB-15) |
| among the youngest, as many as terminating groups are replaced | once one of these groups has ended |
| beyond `spec.replicas` and surge, together with live and terminating groups | once one of these groups has ended |
| any other | at once |

A waiting leader refers to a terminating group (annotation `replaces`). If no leader is missing, terminating groups
without such a reference are *surplus*. They were scaled down, or are the last groups of a rollout, and no leader
waits for them. Surplus groups that exceed `spec.replicas` and surge were scaled down, and do not count. The caller
stores both between reconciliations. After a restart, they are recomputed from the annotations of the leaders. There
is one exception: if a group failed and no leader refers to it yet, the surplus group is unknown. In this case, its
replacement waits for all terminating groups, as in the Go controller (N-GATE-2).

Input: the leaders, and the groups without a live leader that have pods. Output: patches of leaders, and the surplus.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime.objects import intstr, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Event, Patch, concurrently, identified_patch
from leaderworkerset.api import groupname, labels, recreationrecord
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.policies.placement import PREFERENCES, Prefer, prefer_none
from leaderworkerset.core.policies.replacement import GATED_COST


class GatedLeaders(Struct, frozen=True, kw_only=True):
    """The remaining gated leaders, the terminating groups, and whether each group was previously surplus.

    `ending` contains each group that has pods but no live leader. It maps the leader's name to the time by which the
    last pod must have terminated. `surplus` names some of these groups, and states which of them do not count.
    """

    leaders: Sequence[JSONObject] = ()
    ending: Mapping[str, str] = field(default_factory=dict)
    surplus: Mapping[str, bool] = field(default_factory=dict)


class FormerGroups(NamedTuple):
    """The records of recreated groups, and the node preferences for their new leaders."""

    records: Sequence[JSONObject] = ()
    prefer: Prefer = prefer_none


class Replacement(Struct, frozen=True):
    """The patches for gated leaders, the terminating groups without a replacement, and the admitted leaders."""

    actions: tuple[Action, ...]
    surplus: Mapping[str, bool]
    admitted: Sequence[JSONObject] = ()


NO_REPLACEMENT: Final = Replacement((), {})
"""The result if there are no waiting leaders or terminating groups."""


class _AdmissionOrder(Struct, frozen=True):
    """The admitted leaders and the waiting leaders, oldest first.

    `has_missing_leaders` states that leaders must still be created. `excess` is the number of groups beyond replicas and surge.
    """

    admitted: Sequence[JSONObject]
    waiting: Sequence[JSONObject]
    relevant: Collection[str]
    has_missing_leaders: bool
    excess: int


def decide(
    obj: JSONObject,
    lws: LeaderWorkerSet,
    key: str,
    groups: Collection[GroupFacts],
    gated: GatedLeaders,
    former: FormerGroups,
) -> Replacement:
    """Process the gated leaders of a LeaderWorkerSet whose Deployment has the revision `key`."""
    exhausted = {group.leader for group in groups if group.is_exhausted}
    gated = replace(gated, ending={name: end for name, end in gated.ending.items() if name not in exhausted})
    order = _order_leaders(lws, key, groups, gated)
    predecessors = {
        meta.name(leader): _replaced_group(leader)
        for leader in order.waiting
        if _replaced_group(leader) in gated.ending
    }
    free = iter(sorted(set(order.relevant) - set(predecessors.values()), key=gated.ending.__getitem__, reverse=True))
    patches = []
    unnamed = [leader for leader in order.waiting if meta.name(leader) not in predecessors]
    for leader, name in zip(unnamed, free, strict=False):
        predecessors[meta.name(leader)] = name
        event = decisionevents.replacement_deferred_event(obj, leader, len(order.relevant))
        patches.append(record_wait(leader, name, event))
    replaced_names = {group.replaced_group for group in groups if not group.is_deleting} | set(predecessors.values())
    others = chain(free, _recreated_leaders(former.records, key, groups))
    followed = (name for name in others if name not in replaced_names)
    recorded = {recreationrecord.leader_of(record): record for record in former.records}
    for leader in order.admitted:
        replaced = _replaced_group(leader) or next(followed, "")
        patches.append(admit(obj, leader, replaced, former.prefer(obj, leader, recorded.get(replaced))))
    surplus = gated.surplus.keys() if order.has_missing_leaders else gated.ending.keys() - set(predecessors.values())
    return Replacement(
        concurrently(patches), _surplus_groups(gated, surplus & gated.ending.keys(), order.excess), order.admitted
    )


def _surplus_groups(gated: GatedLeaders, surplus: Collection[str], excess: int) -> Mapping[str, bool]:
    """Return the surplus groups, and whether each group is excluded from the count.

    Groups that did not count before still do not count, nor do additional groups up to the excess.
    """
    before = [name for name in sorted(surplus) if gated.surplus.get(name)]
    others = [name for name in sorted(surplus) if not gated.surplus.get(name)]
    placeless = {*before, *others[: max(excess - len(before), 0)]}
    return {name: name in placeless for name in sorted(surplus)}


def _order_leaders(
    lws: LeaderWorkerSet, key: str, groups: Collection[GroupFacts], gated: GatedLeaders
) -> _AdmissionOrder:
    """Admit the oldest leaders up to the limit. The youngest leaders wait for the terminating groups."""
    live = [group for group in groups if not group.is_deleting or group.is_exhausted]
    placed = [group for group in live if not group.has_replacement_gate]
    current = sorted((leader for leader in gated.leaders if groupname.revision_key(leader) == key), key=meta.by_age)
    free = lws.spec.replicas - sum(group.revision == key for group in placed)
    within = current[: max(free, 0)]
    most = lws.spec.replicas + _surge(lws)
    desired = most if any(group.revision != key for group in live) else lws.spec.replicas
    missing = max(desired - len(placed) - len(within), 0)
    replaced = {_replaced_group(leader) for leader in current} & gated.ending.keys()
    relevant = (gated.ending.keys() - gated.surplus.keys()) | replaced
    excess = len(placed) + len(gated.ending) - most
    ahead = len(within)
    if lws.spec.group_replacement_policy.waits_for_termination:
        placeless = sum(gated.surplus.get(name, False) for name in gated.ending)
        ahead = max(min(ahead - max(len(relevant) - missing, 0), placeless - excess), 0)
    return _AdmissionOrder(within[:ahead], within[ahead:], relevant, missing > 0, excess)


def _surge(lws: LeaderWorkerSet) -> int:
    """Return the surge of the Deployment. Unlike for groups with ordinals, it can exceed `spec.replicas`."""
    return intstr.scale(lws.spec.rollout_strategy.rolling_update_configuration.max_surge, lws.spec.replicas, up=True)


def _recreated_leaders(records: Iterable[JSONObject], key: str, groups: Collection[GroupFacts]) -> Iterator[str]:
    """Yield the deleted leaders with this revision whose groups were recreated, latest first."""
    known = {group.leader for group in groups if not group.is_deleting}
    former = [
        (read.due_at, recreationrecord.leader_of(record))
        for record in records
        if (read := recreationrecord.read(record)) and read.revision == key
    ]
    yield from (leader for _, leader in sorted(former, reverse=True) if leader not in known)


def record_wait(leader: JSONObject, replaced: str, event: Event) -> Patch:
    """Record the group that delays a leader. The event is reported once."""
    is_first = not _replaced_group(leader)
    change = {"metadata": {"annotations": {labels.REPLACES: replaced}}}
    return identified_patch(PODS, leader, change, if_present=True, on_success=(event,) if is_first else ())


def admit(obj: JSONObject, leader: JSONObject, replaced: str, preferences: Sequence[JSONObject] = ()) -> Patch:
    """Remove the gate and the pod deletion cost that was added with it. Other gates remain."""
    own = meta.annotations(leader)
    changes: JSONObject = {labels.REPLACES: replaced} if replaced != own.get(labels.REPLACES, "") else {}
    if own.get(labels.POD_DELETION_COST) == GATED_COST:
        changes[labels.POD_DELETION_COST] = None
    opened = open_gate(leader, preferences)
    metadata = {"uid": meta.uid(leader)} | ({"annotations": changes} if changes else {})
    patch = opened.patch | {"metadata": metadata}
    return replace(opened, patch=patch, on_success=(decisionevents.replacement_admitted_event(obj, leader),))


def open_gate(leader: JSONObject, preferences: Sequence[JSONObject]) -> Patch:
    """Remove only the gate. Add node preferences to the leader if there are any."""
    gates = [gate for gate in meta.spec(leader)["schedulingGates"] if gate.get("name") != labels.REPLACEMENT_GATE]
    spec: JSONObject = {"schedulingGates": gates or None}
    if preferences:
        spec["affinity"] = {"nodeAffinity": {PREFERENCES: [*preferences]}}
    return identified_patch(PODS, leader, {"spec": spec}, if_present=True)


def _replaced_group(leader: JSONObject) -> str:
    return meta.annotations(leader).get(labels.REPLACES, "")
