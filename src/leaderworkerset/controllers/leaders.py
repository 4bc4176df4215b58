"""The leader pods of a LeaderWorkerSet as the API server has them now, for the one decision that caches may not be late for.

An update holds all groups back first. Those that the update before it had let go may have been deleted just then, and
what two watches bring has no common order: the leader StatefulSet may be seen as held while the deletion is not seen
yet. Later steps of an update count groups that are of no use to it as missing, deleted or not.
"""

from collections.abc import Mapping
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.core.leaderworkerset.groups import Group

PAGE: Final = 100
"""Leaders for each request: reading a page of large pods holds the event loop up for some milliseconds."""


async def are_as_known(client: Client, lws: ObjectKey, known: Mapping[str, Group]) -> bool:
    """Return whether no leader that is known to stay is being deleted, or gone; raise `KubeError` without an answer."""
    selector = f"{labels.NAME}={lws.name},{labels.WORKER_INDEX}={labels.LEADER_WORKER_INDEX}"
    selection, token, staying = Selection(PODS, lws.namespace, selector), "", set[UID]()
    while True:
        page = await client.list_page(selection, limit=PAGE, token=token)
        staying |= {meta.uid(pod) for pod in page.items if not meta.is_deleting(pod)}
        if not (token := page.token):
            break
    return all(group.is_deleting or group.uid in staying for group in known.values())
