"""Rereads the Services of groups without workers from the API server if the cached owner is different.

A larger group with a Service conflict has no workers, so it is not ready. A group of one pod becomes ready without
its Service. A Service with a different owner might not have the label that the cache selects.
"""

from collections.abc import Iterable
from typing import Final

from kuberuntime.cache.cache import Store
from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import SERVICES
from leaderworkerset.api import groupname
from leaderworkerset.core.leaderworkerset import groupstate, services

NONE: Final[frozenset[str]] = frozenset()


async def unreachable_leaders(
    client: Client, obj: JSONObject, leaders: Iterable[JSONObject], cached: Store
) -> frozenset[str]:
    """Return the names of ready leaders without workers whose group Service has a different owner.

    `obj` is a LeaderWorkerSet whose groups have their own Services.
    Raise `KubeError` if the API server does not respond.
    """
    ready = (leader for leader in leaders if groupstate.original_size(leader) == 1 and groupstate.is_pod_ready(leader))
    unsettled = [leader for leader in ready if not _has_own_service(leader, cached)]
    if not unsettled:
        return NONE
    listing = await client.list(SERVICES, namespace=meta.namespace(obj))
    existing = {meta.name(service): service for service in listing.items}
    pairs = ((leader, existing.get(groupname.hostname(leader))) for leader in unsettled)
    return frozenset(
        meta.name(leader) for leader, service in pairs if service and not services.is_usable(service, obj, leader)
    )


def _has_own_service(leader: JSONObject, cached: Store) -> bool:
    service = cached.get(ObjectKey(meta.namespace(leader), groupname.hostname(leader)))
    return service is not None and meta.is_controlled(service, leader)
