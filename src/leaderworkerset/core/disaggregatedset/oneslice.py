"""Decides about one slice of a DisaggregatedSet (R-DS-30): drained revisions, rollout or sizes, services.

In: the parts and services of the slice, and the desired state. Out: actions in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action, Actions, Create, Delete, Event, Patch
from leaderworkerset.api.disaggregatedset import INITIAL_REPLICAS, DisaggregatedSet
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.disaggregatedset import announcements, fleet, roleservices, roleset, roletargets, rolling
from leaderworkerset.core.disaggregatedset.fleet import RolePart
from leaderworkerset.core.disaggregatedset.roleset import RolePlace
from leaderworkerset.core.disaggregatedset.roletargets import Scalers


@dataclass(frozen=True, slots=True)
class DesiredSet:
    """The desired state of a set in every slice: the object, its structs, its revision, and the replicas of the scalers."""

    obj: JSONObject
    whole: DisaggregatedSet
    revision: str
    scalers: Scalers


@dataclass(frozen=True, slots=True)
class _Slice:
    """One slice: its parts, by whether they are of the newest revision."""

    wanted: DesiredSet
    index: int
    old: tuple[RolePart, ...]
    new: Mapping[str, RolePart]


def reconcile_slice(
    wanted: DesiredSet, index: int, parts: Sequence[RolePart], services: Sequence[JSONObject]
) -> Actions:
    """Return the actions for the slice; `parts` and `services` are those of the slice."""
    old = [part for part in parts if part.revision != wanted.revision]
    drained = [part for found in fleet.newest_first(old) if not any(one.replicas for one in found) for part in found]
    rest = tuple(part for part in old if part not in drained)
    one = _Slice(wanted, index, rest, _newest(wanted, parts))
    actions = [*_replace_as(wanted, parts), *_delete_drained(one, drained), *(_roll(one) if rest else _resize(one))]
    current = {role.name: one.new.get(role.name) for role in wanted.whole.roles}
    return (*actions, *roleservices.reconcile_services(wanted.obj, current, old, services))


def _replace_as(wanted: DesiredSet, parts: Sequence[RolePart]) -> list[Patch]:
    """Give groups of every revision their role's replacement policy, also during a rollout (N-DS-2, N-AT-9)."""
    policies = {role.name: role.replacement.value for role in wanted.whole.roles}
    return [
        _patch(part, {"spec": {"groupReplacementPolicy": policies[part.role]}})
        for part in parts
        if part.replacement and part.replacement != policies.get(part.role, part.replacement) and not part.is_deleting
    ]


def _newest(wanted: DesiredSet, parts: Sequence[RolePart]) -> dict[str, RolePart]:
    """Return the parts of the newest revision by role; of two, the one with the current form of name (R-DS-31)."""
    roles = {role.name for role in wanted.whole.roles}
    found = [part for part in parts if part.revision == wanted.revision and part.role in roles]
    return {part.role: part for part in sorted(found, key=lambda part: not part.is_legacy)}


def _delete_drained(one: _Slice, drained: Sequence[RolePart]) -> list[Action]:
    """Delete revisions without groups (R-DS-32); the rollout is completed with the last of them."""
    obj, revision = one.wanted.obj, one.wanted.revision
    actions: list[Action] = []
    going = [part for part in drained if not part.is_deleting]
    for part in going:
        told: tuple[Event, ...] = (announcements.deleted(obj, part.key.name, "its revision is drained"),)
        if part is going[-1] and not one.old and one.new:
            told += (announcements.completed(obj, revision, one.index),)
        actions.append(Delete(resource=LEADERWORKERSETS, key=part.key, uid=part.uid, on_success=told))
    return actions


def _resize(one: _Slice) -> list[Action]:
    """Scale every role to its size at once (R-DS-31)."""
    actions: list[Action] = []
    for role in one.wanted.whole.roles:
        part = one.new.get(role.name)
        size = roletargets.target(role, one.wanted.scalers, 0 if part is None else part.replicas)
        if part is None:
            actions.append(_create(one, role.name, size))
        elif part.replicas != size and not part.is_deleting:
            actions.append(_patch(part, {"spec": {"replicas": size}}))
    return actions


def _roll(one: _Slice) -> list[Action]:
    obj = one.wanted.obj
    move = rolling.move(one.wanted.whole.roles, one.old, one.new, one.wanted.scalers)
    started = announcements.started(obj, one.wanted.revision, one.index)
    records = [
        _patch(part, {"metadata": {"annotations": {INITIAL_REPLICAS: str(part.replicas)}}}) for part in move.records
    ]
    creates = [
        _create(one, role, 0, (started,) if move.starts and role == move.creates[0] else ()) for role in move.creates
    ]
    scalings = [
        _patch(
            scaling.part,
            {"spec": {"replicas": scaling.replicas}},
            announcements.scaling(
                obj, scaling.part.role, scaling.part.key.name, (scaling.part.replicas, scaling.replicas)
            ),
        )
        for scaling in move.scalings
    ]
    return [*records, *creates, *scalings]


def _patch(part: RolePart, change: JSONObject, *events: Event) -> Patch:
    """Change one field of a LeaderWorkerSet, only if the object is still the observed one (R-DS-19, R-DS-73)."""
    metadata: JSONObject = change.get("metadata") or {}
    patch = change | {"metadata": metadata | {"uid": part.uid}}
    return Patch(resource=LEADERWORKERSETS, key=part.key, patch=patch, on_success=events)


def _create(one: _Slice, role_name: str, replicas: int, events: tuple[Event, ...] = ()) -> Create:
    obj, whole = one.wanted.obj, one.wanted.whole
    place = RolePlace(whole.name, one.index, one.wanted.revision, role_name)
    entry = next(role for role in obj["spec"]["roles"] if role["name"] == role_name)
    return Create(
        resource=LEADERWORKERSETS,
        object=roleset.build(obj, entry, place, replicas=replicas, placement=whole.placement),
        unless_own=True,
        on_success=events,
        on_failure=(announcements.failed_create(obj, LEADERWORKERSETS.kind, place.name),),
    )
