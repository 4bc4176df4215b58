"""Decides about a DisaggregatedSet (R-DS-29).

In: `ObservedDisaggregatedSet`, everything the decision uses, as the caches show it. Out: a `Plan`, in the order of the
contract:

1. delete surplus slices, create scalers, convert LeaderWorkerSets from before slices existed;
2. all slices concurrently, so that an error in one does not stop the others;
3. then, whatever the results, the statuses of the scalers and of the set.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.plan import Action, Delete, Finally, Plan, PutStatus, Together
from leaderworkerset.api import disaggregatedset
from leaderworkerset.api.disaggregatedset import DisaggregatedSet
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from leaderworkerset.core.disaggregatedset import (
    announcements,
    fleet,
    rolehash,
    rolescalers,
    roleservices,
    setstatus,
)
from leaderworkerset.core.disaggregatedset.fleet import RolePart
from leaderworkerset.core.disaggregatedset.oneslice import DesiredSet, reconcile_slice
from leaderworkerset.core.disaggregatedset.roleset import RolePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedDisaggregatedSet:
    """What is known about a set: itself, and the objects that carry its name or use a name that its scalers need."""

    disaggregatedset: JSONObject | None
    leaderworkersets: Sequence[JSONObject] = ()
    services: Sequence[JSONObject] = ()
    scalers: Sequence[JSONObject] = ()


def reconcile(observed: ObservedDisaggregatedSet, now: datetime) -> Plan:
    """Decide about the set; one that is being deleted is left to the garbage collector (unlike Q-16)."""
    obj = observed.disaggregatedset
    if obj is None or meta.is_deleting(obj):
        return Plan()
    try:
        whole = disaggregatedset.decode(obj)
        revision = rolehash.revision_of(meta.spec(obj).get("roles") or [])
    except ValueError as error:
        return Plan(error=f"DisaggregatedSet {meta.key(obj)}: {error}")
    parts = fleet.owned(observed.leaderworkersets, whole.uid)
    services = [service for service in observed.services if fleet.is_owned(service, whole.uid)]
    scaled = rolescalers.reconcile_scalers(obj, whole, observed.scalers, parts)
    converted = _legacy(whole, parts, revision)
    head = [*_surplus(obj, whole, parts, services), *scaled.actions, *_convert(obj, converted, services)]
    wanted = DesiredSet(obj, whole, revision, scaled.wanted)
    kept = [part for part in parts if part not in converted]
    slices = _slices(wanted, kept, services)
    status = setstatus.build(whole, parts, revision, scaled.wanted, now)
    reports = rolescalers.report(whole.name, scaled.objects, parts, now)
    return _plan(head, slices, reports, _write_status(obj, whole, status))


def _plan(
    head: Sequence[Action],
    slices: tuple[tuple[Action, ...], ...],
    reports: Sequence[Action],
    status: Sequence[Action],
) -> Plan:
    """Compose the parts of a pass; parts without work add no action."""
    active = tuple(actions for actions in slices if actions)
    work: tuple[Action, ...] = (Together(sequences=active, slow_start=False),) if active else ()
    after: tuple[Action, ...] = (*reports, *status)
    if reports and status:
        after = (Finally(actions=tuple(reports), after=tuple(status)),)
    if not work:
        return Plan((*head, *after))
    return Plan((*head, Finally(actions=work, after=after) if after else work[0]))


def _slices(
    wanted: DesiredSet, parts: Sequence[RolePart], services: Sequence[JSONObject]
) -> tuple[tuple[Action, ...], ...]:
    """Decide slice by slice; each part and service is read once, however many slices there are."""
    parts_of: defaultdict[int | None, list[RolePart]] = defaultdict(list)
    services_of: defaultdict[int | None, list[JSONObject]] = defaultdict(list)
    for part in parts:
        parts_of[part.slice].append(part)
    for service in services:
        services_of[fleet.slice_of(service)].append(service)
    return tuple(
        reconcile_slice(wanted, index, parts_of[index], services_of[index]) for index in range(wanted.whole.slices)
    )


def _surplus(
    obj: JSONObject, whole: DisaggregatedSet, parts: Sequence[RolePart], services: Sequence[JSONObject]
) -> list[Action]:
    """Delete the slices beyond `spec.slices` (R-DS-33)."""
    deletes: list[Action] = [
        Delete(
            resource=LEADERWORKERSETS,
            key=part.key,
            uid=part.uid,
            on_success=(announcements.deleted(obj, part.key.name, f"slice {part.slice} was removed"),),
        )
        for part in parts
        if part.slice is not None and part.slice >= whole.slices and not part.is_deleting
    ]
    indexes = ((fleet.slice_of(service), service) for service in services)
    return [
        *deletes,
        *(roleservices.delete(service) for index, service in indexes if index is not None and index >= whole.slices),
    ]


def _legacy(whole: DisaggregatedSet, parts: Sequence[RolePart], revision: str) -> list[RolePart]:
    """Return the parts that need a slice label before a second slice can exist (R-DS-89)."""
    if whole.slices <= 1:
        return []
    names = {RolePlace(whole.name, 0, revision, role.name).legacy_name for role in whole.roles}
    return [part for part in parts if part.is_legacy and part.revision == revision and part.key.name in names]


def _convert(obj: JSONObject, parts: Sequence[RolePart], services: Sequence[JSONObject]) -> list[Action]:
    actions: list[Action] = []
    for part in parts:
        if part.is_deleting:
            continue
        service = ObjectKey(part.key.namespace, roleservices.service_name(part))
        actions += [roleservices.delete(one) for one in services if meta.key(one) == service]
        event = announcements.deleted(obj, part.key.name, "it is created again as slice 0", "Migrate")
        actions.append(Delete(resource=LEADERWORKERSETS, key=part.key, uid=part.uid, on_success=(event,)))
    return actions


def _write_status(
    obj: JSONObject, whole: DisaggregatedSet, status: disaggregatedset.DisaggregatedSetStatus
) -> list[Action]:
    if status == whole.status:
        return []
    return [
        PutStatus(
            resource=DISAGGREGATED_SETS,
            object=obj | {"status": disaggregatedset.encode_status(status)},
            resource_version=meta.resource_version(obj),
            if_present=True,
        )
    ]
