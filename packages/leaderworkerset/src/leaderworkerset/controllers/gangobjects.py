"""Declares the caches, indexes and permissions for gang scheduler objects.

Only the kinds of the configured schedulers are watched, and only objects with the name of a LeaderWorkerSet. A kind
that is not served yet is watched as soon as it is served.

A LeaderWorkerSet may delegate its scheduling to the Workload of its owner (N-K8S-16). This Workload is not cached,
because owners can have any kind, and the manager may read only some kinds. If the API server does not permit the read,
the Workload counts as absent (N-AT-15).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import msgspec

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.controller.controller import Watch
from kuberuntime.errors import ForbiddenError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey, OwnerReference
from kuberuntime.objects.resources import Resource
from kuberuntime.policyrules import Permission
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers import cachedfields, indexes
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.core.gang.gangs import SCHEDULING
from leaderworkerset.core.gang.native import WORKLOADS
from leaderworkerset.core.policies import delegation
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.core.policies.policy import Parent, SchedulingFailure, SchedulingObjects

OWNER: Final = "owner"
POD_GROUPS: Final = "pod groups"


def owner_values(obj: JSONObject) -> Iterable[str]:
    """Index a group object by the group, and a shared object by its LeaderWorkerSet."""
    return indexes.group_values(obj) if labels.GROUP_INDEX in meta.labels(obj) else indexes.lws_values(obj)


def pod_group_values(obj: JSONObject) -> Iterable[str]:
    """Index the PodGroups for `spec.scheduling` by their LeaderWorkerSet."""
    return indexes.lws_values(obj) if labels.SCHEDULING_LEVEL in meta.labels(obj) else ()


def gang_caches(gang: Gang) -> tuple[Cache, ...]:
    """Return the caches for gang scheduler kinds."""
    return tuple(
        Cache(
            indexes.labeled_selection(resource),
            {OWNER: owner_values, POD_GROUPS: pod_group_values},
            keep=cachedfields.same_fields(cachedfields.GANG_OBJECT),
            is_optional=True,
        )
        for resource in gang.resources
    )


def gang_permissions(gang: Gang) -> tuple[Permission, ...]:
    """Return the permissions to write gang scheduler objects."""
    own = tuple(Permission(resource, ("create", "delete")) for resource in gang.resources)
    patches = tuple(Permission(resource, ("patch",)) for resource in gang.resources if resource in SCHEDULING)
    return (*own, *patches, Permission(LEADERWORKERSETS, ("patch",), "status")) if patches else own


class GangObjects:
    """The gang scheduler objects in the open caches."""

    def __init__(self, caches: Caches, gang: Gang) -> None:
        self._informers = tuple(caches[cache] for cache in gang_caches(gang))

    def group_objects(self, lws: ObjectKey, group_index: str) -> SchedulingObjects:
        """Return the objects of a group, including objects shared with other groups."""
        objects = (*self._indexed_objects(indexes.group_value(lws, group_index)), *self._indexed_objects(str(lws)))
        return SchedulingObjects(objects=objects, kinds=self._served_kinds())

    def shared_objects(self, lws: ObjectKey, unused: Sequence[JSONObject] = ()) -> SchedulingObjects:
        """Return the shared objects of a LeaderWorkerSet, and the `unused` PodGroups of single groups."""
        return SchedulingObjects(objects=self._indexed_objects(str(lws)), unused=unused, kinds=self._served_kinds())

    def pod_groups(self, lws: ObjectKey) -> Iterable[JSONObject]:
        """Yield the PodGroups of all groups of a LeaderWorkerSet with `spec.scheduling`."""
        for informer in self._informers:
            yield from informer.store.by_index(POD_GROUPS, str(lws))

    def _served_kinds(self) -> Collection[Resource]:
        return [informer.resource for informer in self._informers if informer.is_served]

    def watches(self, keys: Callable[[Change], Iterable[ObjectKey]]) -> Sequence[Watch]:
        """Return the watches, and the keys that are enqueued after changes."""
        return tuple(Watch(informer, keys) for informer in self._informers)

    def _indexed_objects(self, value: str) -> Sequence[JSONObject]:
        return [obj for informer in self._informers for obj in informer.store.by_index(OWNER, value)]


DEEPEST: Final = 8
"""The maximum length of an owner chain that is followed."""


async def find_parent(client: Client, lws: JSONObject) -> Parent:
    """Return the Workload of the nearest owner with a Workload, or the reason why there is none.

    Raise `KubeError` if the API server does not respond.
    """
    try:
        return await _find_parent(client, lws)
    except ValueError as error:
        return SchedulingFailure(delegation.NOT_READY, str(error))
    except (ForbiddenError, NotFoundError) as error:
        return SchedulingFailure(delegation.NOT_READY, f"cannot read an owner: {error}")


async def _find_parent(client: Client, lws: JSONObject) -> JSONObject:
    workloads = (await client.list(WORKLOADS, namespace=meta.namespace(lws))).items
    obj = lws
    for _ in range(DEEPEST):
        owner = meta.controller_of(obj)
        if owner is None:
            break
        if (workload := delegation.find_owner_workload(workloads, owner)) is not None:
            return workload
        obj = await _read_owner(client, owner, meta.namespace(lws))
    raise ValueError(f"owners of LeaderWorkerSet {meta.key(lws)} do not have a Workload yet")


async def _read_owner(client: Client, owner: OwnerReference, namespace: str) -> JSONObject:
    """Read an owner. Raise `ValueError` if its UID is different or its kind is not served."""
    version, kind = owner["apiVersion"], owner["kind"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    discovery = msgspec.json.decode((await client.send(Request("GET", base))).body, type=JSONObject)
    served = (item for item in discovery.get("resources") or [] if item.get("kind") == kind and "/" not in item["name"])
    plural = next((item["name"] for item in served), None)
    if plural is None:
        raise ValueError(f"the API server does not serve {kind} of {version}, which is the kind of the owner")
    group, _, number = version.rpartition("/")
    obj = await client.get(Resource(group, number, plural, kind), ObjectKey(namespace, owner["name"]))
    if meta.uid(obj) != owner["uid"]:
        raise ValueError(f"{kind} {owner['name']} is not the owner, because its UID differs")
    return obj
