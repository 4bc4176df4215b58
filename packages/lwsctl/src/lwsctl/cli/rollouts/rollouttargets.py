"""Reads the LeaderWorkerSet of a rollout command, with its pods, revisions and leader StatefulSet.

Because a DisaggregatedSet creates new LeaderWorkerSets in a rollout, it has no previous template and no partition,
and only `status` supports it. Its controller writes its LeaderWorkerSets. They can be displayed, and restarted only
by group.
"""

from collections.abc import Awaitable, Callable

from kuberuntime.client.client import Client
from kuberuntime.errors import ConflictError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, DEPLOYMENTS, PODS, STATEFULSETS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.disaggregatedset import SET_NAME
from leaderworkerset.api.resources import LEADERWORKERSETS, OF_STATEFULSETS
from leaderworkerset.decisions.revisioncontent import RevisionEntry, find_entry, history_selector
from lwsctl.cli import targets
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError
from lwsctl.model.leaderworkerset import View, view
from lwsctl.rollout import ownfields, revisionhistory

MANAGER = ownfields.ROLLOUT

ATTEMPTS = 5
"""The number of attempts to read and write an object that other clients change at the same time."""


async def read(session: Session, name: str) -> JSONObject:
    """Return the LeaderWorkerSet. Reject a DisaggregatedSet with an explanation."""
    resource, obj = await targets.find_set(session, name)
    if resource == LEADERWORKERSETS:
        return obj
    parts = ", ".join(map(meta.name, await targets.list_parts(session, session.namespace, name))) or "none yet"
    raise CommandError(
        f"{name} is a DisaggregatedSet and has no revisions; use `{session.lws} rollout status {name}`, or specify one of its LeaderWorkerSets ({parts})"
    )


async def read_writable(session: Session, name: str) -> JSONObject:
    """Return a LeaderWorkerSet whose spec is not managed by a different controller."""
    obj = await read(session, name)
    owner = meta.labels(obj).get(SET_NAME)
    if owner and meta.controller_of(obj) is not None:
        raise CommandError(
            f"{name} belongs to DisaggregatedSet {owner}, which would undo the change; change {owner} instead"
        )
    return obj


async def retry_conflicts(attempt: Callable[[], Awaitable[str]]) -> str:
    """Return the result of a write. After a conflict, reread the object and retry."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except ConflictError:
            continue
    return await attempt()


async def read_view(session: Session, lws: JSONObject) -> View:
    """Read the pods and the leader StatefulSet or Deployment of a LeaderWorkerSet."""
    selector = f"{labels.NAME}={meta.name(lws)}"
    listing = await session.client.list(PODS, namespace=meta.namespace(lws), label_selector=selector)
    return view(lws, listing.items, leaders=await read_leader_workload(session.client, lws))


async def entries(session: Session, view: View) -> list[RevisionEntry]:
    """Return the revisions of a LeaderWorkerSet, sorted from the oldest."""
    revisions: list[JSONObject] = []
    own = f"{labels.NAME}={view.name},{labels.TEMPLATE_REVISION_HASH},!{OF_STATEFULSETS}"
    for selector in (own, history_selector(view.name)):
        listing = await session.client.list(CONTROLLER_REVISIONS, namespace=view.namespace, label_selector=selector)
        revisions += listing.items
    return revisionhistory.entries(view, revisions)


async def read_history(session: Session, name: str) -> list[RevisionEntry]:
    """Return the revisions of the named LeaderWorkerSet."""
    return await entries(session, await targets.read_view(session, await read(session, name)))


def read_entry(session: Session, name: str, history: list[RevisionEntry], number: int) -> RevisionEntry:
    """Return the revision with this number. If it does not exist, the error lists the existing revisions."""
    entry = find_entry(history, number)
    if entry is None:
        numbers = ", ".join(str(entry.number) for entry in history) or "none"
        raise CommandError(
            f"{name} has no revision {number} (existing: {numbers}); see `{session.lws} rollout history {name}`"
        )
    return entry


async def read_leader_workload(client: Client, lws: JSONObject) -> JSONObject | None:
    """Return the leader StatefulSet, or the leader Deployment for random keys, or None if it does not exist."""
    return await client.find(DEPLOYMENTS if groupname.uses_random_keys(lws) else STATEFULSETS, meta.key(lws))
