"""The objects of gang schedulers in memory: which caches are open, what is found in them, and what writing them takes.

Only the kinds of the configured schedulers are followed, and of them what carries the name of a LeaderWorkerSet. A kind
that is not served is followed once it is.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kuberuntime.cache.informer import Change
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.permissions import Permission
from leaderworkerset.api import labels
from leaderworkerset.controllers import kept, selection
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.core.policies.gang import Gang

OWNER: Final = "owner"


def owner_values(obj: JSONObject) -> Iterable[str]:
    """File the object of a group under it, and what groups share under their LeaderWorkerSet."""
    return selection.group_values(obj) if labels.GROUP_INDEX in meta.labels(obj) else selection.lws_values(obj)


def gang_caches(gang: Gang) -> tuple[Cache, ...]:
    """Return the caches of the kinds that the gang schedulers write."""
    return tuple(
        Cache(selection.ours(resource), {OWNER: owner_values}, keep=kept.gang_object, optional=True)
        for resource in gang.resources
    )


def gang_permissions(gang: Gang) -> tuple[Permission, ...]:
    """Return what writing the objects of the gang schedulers asks of the API server."""
    return tuple(Permission(resource, ("create", "delete")) for resource in gang.resources)


class GangObjects:
    """What the open caches know of the objects of gang schedulers."""

    def __init__(self, caches: Caches, gang: Gang) -> None:
        self._informers = tuple(caches[cache] for cache in gang_caches(gang))

    def of_group(self, lws: ObjectKey, group_index: str) -> Sequence[JSONObject]:
        """Return the objects of a group, and what it shares with others."""
        return (*self._filed(selection.group_value(lws, group_index)), *self.shared_by(lws))

    def shared_by(self, lws: ObjectKey) -> Sequence[JSONObject]:
        """Return what the groups of a LeaderWorkerSet share."""
        return self._filed(str(lws))

    def watches(self, keys: Callable[[Change], Iterable[ObjectKey]]) -> Sequence[Watch]:
        """Return what is watched, with the keys that a change concerns."""
        return tuple(Watch(informer, keys) for informer in self._informers)

    def _filed(self, value: str) -> Sequence[JSONObject]:
        return [obj for informer in self._informers for obj in informer.store.by_index(OWNER, value)]
