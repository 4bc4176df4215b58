"""Reads the events of a LeaderWorkerSet, group or rank."""

from collections.abc import Sequence

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CORE_EVENTS
from leaderworkerset.api.eventvalue import EventValue
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.views.events.eventhistory import History
from lwsctl.views.selection import Selection


async def read(client: Client, lws: JSONObject, pods: Sequence[JSONObject], selection: Selection) -> list[EventValue]:
    """Read the events in the namespace of a LeaderWorkerSet, and return the events that belong to the selection."""
    events = await client.list(CORE_EVENTS, namespace=meta.namespace(lws))
    return History(lws, pods, await other_names(client, lws)).read(events.items, selection)


async def other_names(client: Client, lws: JSONObject) -> list[str]:
    """Return the names of the other LeaderWorkerSets in the namespace."""
    listing = await client.list(LEADERWORKERSETS, namespace=meta.namespace(lws))
    return [meta.name(other) for other in listing.items if meta.name(other) != meta.name(lws)]
