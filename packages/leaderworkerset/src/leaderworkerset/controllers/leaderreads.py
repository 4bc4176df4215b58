"""Completes the observation of a LeaderWorkerSet with reads from the API server if caches are outdated.

`core/leaderworkerset/outline.py` names the reads before a decision. The reasons are:

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

After a manager replica becomes the leader, the source of the last apply of the leader StatefulSet or Deployment is
unknown. Caches contain only a few of its fields, so it is read completely once, and applied only if it differs.

A finalizer keeps evidence. A namespace that is being deleted waits for its pods before its LeaderWorkerSets are
deleted, so it would wait for evidence forever. Namespaces are not cached.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, NAMESPACES, PODS, STATEFULSETS, Resource
from kuberuntime.plan import Plan
from leaderworkerset.api import groupname, labels
from leaderworkerset.capabilities.history import revisionhistory
from leaderworkerset.core.leaderworkerset.decision import PreviousResults
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.leaderworkerset.outline import Outline, Read
from leaderworkerset.core.restarts import retention

PAGE: Final = 100
"""The page size for listing leaders. Decoding a page of large pods blocks the event loop for a few milliseconds."""


BEHIND: Final = 1.0
"""The seconds until the next decision if the caches are behind the API server."""


async def read(client: Client, outlined: Outline) -> PreviousResults | Plan:
    """Return the input and the additional objects for a reconciliation, or the plan if it is impossible.

    Raise `KubeError` if the API server does not respond.
    """
    facts, reads = outlined
    key, known, current = meta.key(facts.obj), facts.observed.known, facts.current
    if Read.LEADERS in reads and not await do_leaders_exist(client, key, facts.observed.groups):
        return Plan(requeue_after=BEHIND)
    if Read.NAMESPACE in reads and await is_namespace_terminating(client, key.namespace):
        return Plan(retention.remove_finalizer(facts.observed.evidence))
    if reads & {Read.WORKLOAD, Read.HISTORY}:
        kind = DEPLOYMENTS if facts.is_hash else STATEFULSETS
        known = replace(known, complete_workload=await read_object(client, kind, key))
    if Read.HISTORY in reads:
        revision = groupname.revision_key(known.complete_workload) if known.complete_workload else None
        if revision != (None if current is None else current.revision):
            return Plan(requeue_after=BEHIND)
        selector = revisionhistory.selector(key.name)
        listing = await client.list(CONTROLLER_REVISIONS, namespace=key.namespace, label_selector=selector)
        known = replace(known, history=listing.items)
    return known


async def do_leaders_exist(client: Client, lws: ObjectKey, groups: Mapping[str, GroupFacts]) -> bool:
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


async def read_object(client: Client, kind: Resource, key: ObjectKey) -> JSONObject:
    """Return the complete object, or an empty object if it is deleted.

    Raise `KubeError` if the API server does not respond.
    """
    selection = Selection(kind, key.namespace, field_selector=f"metadata.name={key.name}")
    objects = (await client.list_page(selection)).items  # list, because the roles of earlier versions do not allow get
    return objects[0] if objects else {}


async def is_leader_alive(client: Client, leader: ObjectKey, uid: UID) -> bool:
    """Return whether this leader exists and is not terminating. Raise `KubeError` if there is no response."""
    pod = await read_object(client, PODS, leader)
    return meta.uid(pod) == uid and not meta.is_deleting(pod)


async def is_namespace_terminating(client: Client, name: str) -> bool:
    """Return whether the namespace is deleted or terminating. Raise `KubeError` if there is no response."""
    namespace = await client.find(NAMESPACES, ObjectKey("", name))
    return namespace is None or meta.is_deleting(namespace)
