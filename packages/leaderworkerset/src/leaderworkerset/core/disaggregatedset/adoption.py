"""Adopts objects that were orphaned when their DisaggregatedSet was deleted (docs/adr/0030).

Input: the objects that have the set's name as a label. Output: the patches that make the set their controller. An
orphan has no controller, and its name matches its labels. Labels alone are not sufficient, because they can be
copied.
"""

from collections.abc import Iterable

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import SERVICES, Resource
from kuberuntime.plan import Patch, guarded_patch
from leaderworkerset.api.disaggregatedset import REVISION, ROLE, SET_NAME
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.disaggregatedset import childsets, disaggregatedsetevents, roleservices
from leaderworkerset.core.disaggregatedset.roleset import RolePlace, owner_reference


def adopt(obj: JSONObject, leaderworkersets: Iterable[JSONObject], services: Iterable[JSONObject]) -> tuple[Patch, ...]:
    """Return the patches that make the DisaggregatedSet the controller of its orphans."""
    orphans = [(LEADERWORKERSETS, each) for each in leaderworkersets if _is_orphan(each, obj, "")]
    orphans += [(SERVICES, each) for each in services if _is_orphan(each, obj, roleservices.SUFFIX)]
    return tuple(_adoption(resource, orphan, obj) for resource, orphan in orphans)


def _is_orphan(child: JSONObject, obj: JSONObject, suffix: str) -> bool:
    labels, index = meta.labels(child), childsets.slice_index(child)
    if meta.controller_of(child) is not None or meta.is_deleting(child) or index is None:
        return False
    place = RolePlace(meta.name(obj), index, labels.get(REVISION, ""), labels.get(ROLE, ""))
    is_named = meta.name(child) in (place.name + suffix, place.legacy_name + suffix)
    return is_named and labels.get(SET_NAME) == meta.name(obj)


def _adoption(resource: Resource, orphan: JSONObject, obj: JSONObject) -> Patch:
    change = {"metadata": {"ownerReferences": [*meta.owners(orphan), owner_reference(obj)]}}
    failed = disaggregatedsetevents.failed_adoption_event(obj, resource.kind, meta.name(orphan))
    return guarded_patch(resource, orphan, change, if_present=True, on_failure=(failed,))
