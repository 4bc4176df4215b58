"""Reads the current state of leaders from the API server if cached data is insufficient.

An update first holds all groups back. Groups that the previous update released may have been deleted just before that.
Because two watches are not ordered relative to each other, the cache may show the leader StatefulSet as held, but not
yet the deletion. Later steps of an update are not affected, because they count outdated groups as missing, whether or
not they are deleted.

A revision is retired when all groups have a different one. However, an update to the revision may have started with a
write whose response was lost and that the cache does not show yet. Then the leader StatefulSet would refer to a deleted
revision.

A worker StatefulSet that disappeared is recreated unless its leader was deleted with it. If the pod cache is stale,
each new StatefulSet would belong to a deleted leader. The garbage collector would delete it, and its pods would delay
the cache further.

A new leader of the manager replicas does not know the source of the last apply of the leader StatefulSet or Deployment.
Caches keep only a few of its fields, so it is read completely once, and applied only if it differs.

A finalizer keeps evidence. A namespace that is being deleted waits for its pods before its LeaderWorkerSets are
deleted, so it would wait for evidence forever. Namespaces are not cached.
"""

from collections.abc import Mapping
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import NAMESPACES, PODS, Resource
from leaderworkerset.api import groupname, labels
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts

PAGE: Final = 100
"""The page size for listing leaders. Decoding a page of large pods blocks the event loop for some milliseconds."""


async def are_as_known(client: Client, lws: ObjectKey, groups: Mapping[str, GroupFacts]) -> bool:
    """Return whether all required leaders exist and are not terminating.

    Raise `KubeError` if the API server does not respond.
    """
    selector = f"{labels.NAME}={lws.name},{labels.WORKER_INDEX}={labels.LEADER_WORKER_INDEX}"
    selection, token, staying = Selection(PODS, lws.namespace, selector), "", set[UID]()
    while True:
        page = await client.list_page(selection, limit=PAGE, token=token)
        staying |= {meta.uid(pod) for pod in page.items if not meta.is_deleting(pod)}
        if not (token := page.token):
            break
    return all(group.is_deleting or group.uid in staying for group in groups.values())


async def is_of_revision_known(client: Client, kind: Resource, lws: ObjectKey, cached: JSONObject | None) -> bool:
    """Return whether the leader workload has the same revision as in the cache.

    Raise `KubeError` if the API server does not respond.
    """
    keeper = await read_whole(client, kind, lws)
    return (groupname.revision(keeper) if keeper else None) == (None if cached is None else groupname.revision(cached))


async def read_whole(client: Client, kind: Resource, lws: ObjectKey) -> JSONObject:
    """Return the complete leader StatefulSet or Deployment, or an empty object if it is deleted.

    Raise `KubeError` if the API server does not respond.
    """
    selection = Selection(kind, lws.namespace, field_selector=f"metadata.name={lws.name}")
    keepers = (await client.list_page(selection)).items  # list, because the roles of earlier versions do not allow get
    return keepers[0] if keepers else {}


async def is_living(client: Client, leader: ObjectKey, uid: UID) -> bool:
    """Return whether this leader exists and is not terminating. Raise `KubeError` if there is no response."""
    selection = Selection(PODS, leader.namespace, field_selector=f"metadata.name={leader.name}")
    pods = (await client.list_page(selection)).items
    return any(meta.uid(pod) == uid and not meta.is_deleting(pod) for pod in pods)


async def is_namespace_ending(client: Client, name: str) -> bool:
    """Return whether the namespace is deleted or terminating. Raise `KubeError` if there is no response."""
    namespace = await client.find(NAMESPACES, ObjectKey("", name))
    return namespace is None or meta.is_deleting(namespace)
