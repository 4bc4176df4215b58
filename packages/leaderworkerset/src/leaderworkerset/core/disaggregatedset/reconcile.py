"""Reconciles a DisaggregatedSet (R-DS-29).

Input: `ObservedDisaggregatedSet`, all cached objects that the decision uses. Output: a `Plan`, in the order of the
contract:

0. Adopt orphans of the set. The rest follows once the caches contain their owner (`adoption.py`). 1. Delete surplus
slices, create scalers, and convert LeaderWorkerSets without slices. 2. Roll out or resize all slices and write their
services concurrently. An error in one slice does not stop the others. 3. Write the statuses of the scalers and of the
set, regardless of the results. After a failure, the set is not Available.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.plan import Action, Actions, Concurrently, Create, Delete, Event, Finally, Patch, Plan, PutStatus
from leaderworkerset.api import disaggregatedset
from leaderworkerset.api.disaggregatedset import INITIAL_REPLICAS, DisaggregatedSet
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.disaggregatedset import (
    adoption,
    childsets,
    disaggregatedsetevents,
    rolehash,
    rolescalers,
    roleservices,
    roleset,
    roletargets,
    setstatus,
    slicerollout,
)
from leaderworkerset.core.disaggregatedset.childsets import RolePart
from leaderworkerset.core.disaggregatedset.roleset import RolePlace
from leaderworkerset.core.disaggregatedset.roletargets import Scalers


class DesiredSet(Struct, frozen=True):
    """The desired state of a DisaggregatedSet in every slice.

    It includes the object, the revision, and the scaler replicas.
    """

    obj: JSONObject
    disaggregated_set: DisaggregatedSet
    revision: str
    scalers: Scalers


class _Slice(Struct, frozen=True):
    """One slice with its parts at the latest revision and its other parts."""

    desired: DesiredSet
    index: int
    old: tuple[RolePart, ...]
    new: Mapping[str, RolePart]


def reconcile_slice(
    desired: DesiredSet, index: int, parts: Sequence[RolePart], services: Sequence[JSONObject]
) -> Actions:
    """Return the actions for the slice. `parts` and `services` belong to the slice."""
    old = [part for part in parts if part.revision != desired.revision]
    drained = [
        part
        for revision_parts in childsets.group_by_revision(old)
        if not any(other.replicas for other in revision_parts)
        for part in revision_parts
    ]
    rest = tuple(part for part in old if part not in drained)
    piece = _Slice(desired, index, rest, _latest_parts(desired, parts))
    actions = [
        *_set_policies(desired, parts),
        *_delete_drained(piece, drained),
        *(_roll_out(piece) if rest else _resize(piece)),
    ]
    current = {role.name: piece.new.get(role.name) for role in desired.disaggregated_set.roles}
    return (*actions, *roleservices.reconcile_services(desired.obj, current, old, services))


def _set_policies(desired: DesiredSet, parts: Sequence[RolePart]) -> Iterator[Patch]:
    """Yield patches for policies that are not part of the revision (N-DS-2, N-AT-9, N-PT-5)."""
    roles = {role.name: role for role in desired.disaggregated_set.roles}
    for part in parts:
        role = roles.get(part.role)
        if role is None or part.is_deleting:
            continue
        policies: JSONObject = {}
        if part.replacement_policy and part.replacement_policy != role.replacement_policy.value:
            policies["groupReplacementPolicy"] = role.replacement_policy.value
        if part.termination_policy != role.termination_policy:
            policies["podTerminationPolicy"] = role.termination_policy
        if policies:
            yield _patch(desired.obj, part, {"spec": policies})


def _latest_parts(desired: DesiredSet, parts: Sequence[RolePart]) -> dict[str, RolePart]:
    """Return the latest parts by role. Parts with the current name format take precedence (R-DS-31)."""
    roles = {role.name for role in desired.disaggregated_set.roles}
    newest = [part for part in parts if part.revision == desired.revision and part.role in roles]
    return {part.role: part for part in sorted(newest, key=lambda part: not part.is_legacy)}


def _delete_drained(piece: _Slice, drained: Sequence[RolePart]) -> list[Action]:
    """Delete revisions without groups (R-DS-32). The rollout is complete after the last deletion."""
    obj, revision = piece.desired.obj, piece.desired.revision
    actions: list[Action] = []
    going = [part for part in drained if not part.is_deleting]
    for part in going:
        events: tuple[Event, ...] = (
            disaggregatedsetevents.deleted_event(obj, part.key.name, "its revision has no more groups"),
        )
        if part is going[-1] and not piece.old and piece.new:
            events += (disaggregatedsetevents.completed_event(obj, revision, piece.index),)
        actions.append(Delete(resource=LEADERWORKERSETS, key=part.key, uid=part.uid, on_success=events))
    return actions


def _resize(piece: _Slice) -> list[Action]:
    """Scale all roles to their desired size in one step (R-DS-31)."""
    actions: list[Action] = []
    for role in piece.desired.disaggregated_set.roles:
        part = piece.new.get(role.name)
        size = roletargets.target_replicas(role, piece.desired.scalers, 0 if part is None else part.replicas)
        if part is None:
            actions.append(_create(piece, role.name, size))
        elif part.replicas != size and not part.is_deleting:
            actions.append(_patch(piece.desired.obj, part, {"spec": {"replicas": size}}))
    return actions


def _roll_out(piece: _Slice) -> list[Action]:
    obj = piece.desired.obj
    move = slicerollout.next_actions(piece.desired.disaggregated_set.roles, piece.old, piece.new, piece.desired.scalers)
    started = disaggregatedsetevents.started_event(obj, piece.desired.revision, piece.index)
    records = [
        _patch(obj, part, {"metadata": {"annotations": {INITIAL_REPLICAS: str(part.replicas)}}})
        for part in move.records
    ]
    creates = [
        _create(piece, role, 0, (started,) if move.is_start and role == move.creates[0] else ())
        for role in move.creates
    ]
    scalings = [
        _patch(
            obj,
            scaling.part,
            {"spec": {"replicas": scaling.replicas}},
            disaggregatedsetevents.scaling_event(
                obj, scaling.part.role, scaling.part.key.name, (scaling.part.replicas, scaling.replicas)
            ),
        )
        for scaling in move.scalings
    ]
    return [*records, *creates, *scalings]


def _patch(obj: JSONObject, part: RolePart, change: JSONObject, *events: Event) -> Patch:
    """Change one field of a LeaderWorkerSet if its resourceVersion is unchanged (R-DS-19, R-DS-73)."""
    metadata: JSONObject = change.get("metadata") or {}
    patch = change | {"metadata": metadata | {"uid": part.uid}}
    contended = (disaggregatedsetevents.contended_event(obj, part.key.name),)
    return Patch(resource=LEADERWORKERSETS, key=part.key, patch=patch, on_success=events, on_contention=contended)


def _create(piece: _Slice, role_name: str, replicas: int, events: tuple[Event, ...] = ()) -> Create:
    obj, disaggregated_set = piece.desired.obj, piece.desired.disaggregated_set
    place = RolePlace(disaggregated_set.name, piece.index, piece.desired.revision, role_name)
    entry = next(role for role in obj["spec"]["roles"] if role["name"] == role_name)
    return Create(
        resource=LEADERWORKERSETS,
        object=roleset.build(obj, entry, place, replicas=replicas, placement=disaggregated_set.placement),
        unless_own=True,
        on_success=events,
        on_failure=(disaggregatedsetevents.failed_create_event(obj, LEADERWORKERSETS.kind, place.name),),
    )


class ObservedDisaggregatedSet(Struct, frozen=True, kw_only=True):
    """A DisaggregatedSet, the objects with its name label, and objects that use the name of a required scaler."""

    disaggregatedset: JSONObject | None
    leaderworkersets: Sequence[JSONObject] = ()
    services: Sequence[JSONObject] = ()
    scalers: Sequence[JSONObject] = ()


def reconcile(observed: ObservedDisaggregatedSet, now: datetime) -> Plan:
    """Reconcile the DisaggregatedSet. The garbage collector handles deleted objects (unlike Q-16)."""
    obj = observed.disaggregatedset
    if obj is None or meta.is_deleting(obj):
        return Plan()
    try:
        disaggregated_set = disaggregatedset.decode(obj)
        revision = rolehash.revision_of(meta.spec(obj).get("roles") or [])
    except ValueError as error:
        failure = reconcilefailure.report(DISAGGREGATED_SETS, obj, reconcilefailure.NOT_READ.format(error=error), now)
        return Plan(failure, error=f"DisaggregatedSet {meta.key(obj)}: {error}")
    parts = childsets.owned_sets(observed.leaderworkersets, disaggregated_set.uid)
    adopted = adoption.adopt(obj, observed.leaderworkersets, observed.services)
    services = [service for service in observed.services if childsets.is_owned(service, disaggregated_set.uid)]
    scaled = rolescalers.reconcile_scalers(obj, disaggregated_set, observed.scalers, parts)
    converted = _legacy_parts(disaggregated_set, parts, revision)
    head = [
        *_delete_surplus_slices(obj, disaggregated_set, parts, services),
        *scaled.actions,
        *_convert_legacy_parts(obj, converted, services),
    ]
    desired = DesiredSet(obj, disaggregated_set, revision, scaled.scalers)
    kept = [part for part in parts if part not in converted]
    slices = _reconcile_slices(desired, kept, services)
    status = setstatus.build(disaggregated_set, parts, revision, scaled.scalers, now)
    reports = rolescalers.status_writes(disaggregated_set.name, scaled.objects, parts, now)
    counts = disaggregatedset.encode_status(status)
    failure_status = reconcilefailure.failed_action_status(DISAGGREGATED_SETS, obj, counts, now)
    if adopted:  # the remaining steps follow once the caches contain the owner
        return Plan(adopted, on_failure=failure_status)
    return _combine_plan(head, slices, (reports, _write_status(obj, disaggregated_set, status), failure_status))


def _combine_plan(
    head: Sequence[Action],
    slices: tuple[tuple[Action, ...], ...],
    results: tuple[Sequence[Action], Sequence[Action], Sequence[Action]],
) -> Plan:
    """Combine the parts of a reconciliation. Parts without changes do not add actions.

    `results` are the statuses of the scalers, the status of the set, and its status if an action fails.
    """
    reports, status, failure_status = results
    active = tuple(actions for actions in slices if actions)
    work: tuple[Action, ...] = (Concurrently(sequences=active, slow_start=False),) if active else ()
    after, otherwise = _status_writes(reports, status), _status_writes(reports, failure_status)
    on_failure = tuple(failure_status) if head else ()
    if not work:
        return Plan((*head, *after), on_failure=on_failure)
    last = Finally(actions=work, after=after, otherwise=otherwise) if after or otherwise else work[0]
    return Plan((*head, last), on_failure=on_failure)


def _status_writes(reports: Sequence[Action], status: Sequence[Action]) -> tuple[Action, ...]:
    """Return the status writes.

    The status of the DisaggregatedSet is written even if writing a scaler status fails.
    """
    return (Finally(actions=tuple(reports), after=tuple(status)),) if reports and status else (*reports, *status)


def _reconcile_slices(
    desired: DesiredSet, parts: Sequence[RolePart], services: Sequence[JSONObject]
) -> tuple[tuple[Action, ...], ...]:
    """Reconcile each slice. Parts and Services are read once, regardless of the number of slices."""
    parts_of: defaultdict[int | None, list[RolePart]] = defaultdict(list)
    services_of: defaultdict[int | None, list[JSONObject]] = defaultdict(list)
    for part in parts:
        parts_of[part.slice].append(part)
    for service in services:
        services_of[childsets.slice_index(service)].append(service)
    return tuple(
        reconcile_slice(desired, index, parts_of[index], services_of[index])
        for index in range(desired.disaggregated_set.slices)
    )


def _delete_surplus_slices(
    obj: JSONObject, disaggregated_set: DisaggregatedSet, parts: Sequence[RolePart], services: Sequence[JSONObject]
) -> list[Action]:
    """Delete slices that exceed `spec.slices` (R-DS-33)."""
    deletes: list[Action] = [
        Delete(
            resource=LEADERWORKERSETS,
            key=part.key,
            uid=part.uid,
            on_success=(disaggregatedsetevents.deleted_event(obj, part.key.name, f"slice {part.slice} was removed"),),
        )
        for part in parts
        if part.slice is not None and part.slice >= disaggregated_set.slices and not part.is_deleting
    ]
    indexes = ((childsets.slice_index(service), service) for service in services)
    return [
        *deletes,
        *(
            roleservices.delete(service)
            for index, service in indexes
            if index is not None and index >= disaggregated_set.slices
        ),
    ]


def _legacy_parts(disaggregated_set: DisaggregatedSet, parts: Sequence[RolePart], revision: str) -> list[RolePart]:
    """Return the parts without a slice label, which is required before a second slice can be created (R-DS-89)."""
    if disaggregated_set.slices <= 1:
        return []
    names = {RolePlace(disaggregated_set.name, 0, revision, role.name).legacy_name for role in disaggregated_set.roles}
    return [part for part in parts if part.is_legacy and part.revision == revision and part.key.name in names]


def _convert_legacy_parts(obj: JSONObject, parts: Sequence[RolePart], services: Sequence[JSONObject]) -> list[Action]:
    actions: list[Action] = []
    for part in parts:
        if part.is_deleting:
            continue
        service = ObjectKey(part.key.namespace, roleservices.service_name(part))
        actions += [
            roleservices.delete(owned_service) for owned_service in services if meta.key(owned_service) == service
        ]
        event = disaggregatedsetevents.deleted_event(obj, part.key.name, "it is recreated as slice 0", "Migrate")
        actions.append(Delete(resource=LEADERWORKERSETS, key=part.key, uid=part.uid, on_success=(event,)))
    return actions


def _write_status(
    obj: JSONObject, disaggregated_set: DisaggregatedSet, status: disaggregatedset.DisaggregatedSetStatus
) -> list[Action]:
    if status == disaggregated_set.status:
        return []
    return [
        PutStatus(
            resource=DISAGGREGATED_SETS,
            object=obj | {"status": disaggregatedset.encode_status(status)},
            resource_version=meta.resource_version(obj),
            if_present=True,
        )
    ]
