"""The objects of gang schedulers in memory: their caches, indexes, and the permissions to write them.

Only the kinds of the configured schedulers are watched, and only objects with the name of a LeaderWorkerSet. A kind
that is not served is watched as soon as it is.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from kuberuntime.cache.informer import Change
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from kuberuntime.policyrules import Permission
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers import indexes, kept
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.core.gang.gangs import SCHEDULING
from leaderworkerset.core.policies.gang import Gang

OWNER: Final = "owner"
POD_GROUPS: Final = "pod groups"


def owner_values(obj: JSONObject) -> Iterable[str]:
    """Index the object of a group by the group, and shared ones by their LeaderWorkerSet."""
    return indexes.group_values(obj) if labels.GROUP_INDEX in meta.labels(obj) else indexes.lws_values(obj)


def pod_group_values(obj: JSONObject) -> Iterable[str]:
    """Index the PodGroups of `spec.scheduling` by their LeaderWorkerSet."""
    return indexes.lws_values(obj) if labels.SCHEDULING_LEVEL in meta.labels(obj) else ()


def gang_caches(gang: Gang) -> tuple[Cache, ...]:
    """Return the caches of the kinds that the gang schedulers write."""
    return tuple(
        Cache(
            indexes.ours(resource),
            {OWNER: owner_values, POD_GROUPS: pod_group_values},
            keep=kept.gang_object,
            optional=True,
        )
        for resource in gang.resources
    )


def gang_permissions(gang: Gang) -> tuple[Permission, ...]:
    """Return the permissions to write the objects of the gang schedulers, and what they report of a refusal."""
    own = tuple(Permission(resource, ("create", "delete")) for resource in gang.resources)
    corrected = tuple(Permission(resource, ("patch",)) for resource in gang.resources if resource in SCHEDULING)
    return (*own, *corrected, Permission(LEADERWORKERSETS, ("patch",), "status")) if corrected else own


class GangObjects:
    """The objects of gang schedulers in the open caches."""

    def __init__(self, caches: Caches, gang: Gang) -> None:
        self._informers = tuple(caches[cache] for cache in gang_caches(gang))

    def of_group(self, lws: ObjectKey, group_index: str) -> Sequence[JSONObject]:
        """Return the objects of a group, and those that it shares with others."""
        return (*self._filed(indexes.group_value(lws, group_index)), *self.shared_by(lws))

    def shared_by(self, lws: ObjectKey) -> Sequence[JSONObject]:
        """Return the objects that the groups of a LeaderWorkerSet share."""
        return self._filed(str(lws))

    def pod_groups_of(self, lws: ObjectKey) -> Iterable[JSONObject]:
        """Yield the PodGroups of all groups of a LeaderWorkerSet with `spec.scheduling`."""
        for informer in self._informers:
            yield from informer.store.by_index(POD_GROUPS, str(lws))

    def served(self) -> Collection[Resource]:
        """Return the kinds that the API server serves."""
        return [informer.resource for informer in self._informers if informer.is_served]

    def watches(self, keys: Callable[[Change], Iterable[ObjectKey]]) -> Sequence[Watch]:
        """Return the watches, with the keys that a change enqueues."""
        return tuple(Watch(informer, keys) for informer in self._informers)

    def _filed(self, value: str) -> Sequence[JSONObject]:
        return [obj for informer in self._informers for obj in informer.store.by_index(OWNER, value)]
