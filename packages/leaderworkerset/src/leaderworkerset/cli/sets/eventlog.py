"""Reads the events of a LeaderWorkerSet, a group or a rank."""

from collections.abc import Sequence

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.cli.cluster.target import Session
from leaderworkerset.views.events.eventhistory import Happening, History
from leaderworkerset.views.selection import Selection


async def read(session: Session, lws: JSONObject, pods: Sequence[JSONObject], selection: Selection) -> list[Happening]:
    """Read the events of a namespace, and return the events about the selection."""
    events = await session.client.list(CORE_EVENTS, namespace=session.namespace)
    return History(lws, pods, await other_names(session, lws)).read(events.items, selection)


async def other_names(session: Session, lws: JSONObject) -> list[str]:
    """Return the names of the other LeaderWorkerSets."""
    listing = await session.client.list(LEADERWORKERSETS, namespace=session.namespace)
    return [meta.name(other) for other in listing.items if meta.name(other) != meta.name(lws)]
