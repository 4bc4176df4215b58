"""Reads the events of a LeaderWorkerSet, group or rank."""

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.resources import CORE_EVENTS
from leaderworkerset.api.eventvalue import EventValue
from leaderworkerset.api.resources import LEADERWORKERSETS
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.leaderworkerset import View
from lwsctl.views import eventhistory
from lwsctl.views.eventhistory import History
from lwsctl.views.selection import Selection


async def read(client: Client, view: View, selection: Selection) -> list[EventValue]:
    """Read the events in the namespace of a LeaderWorkerSet, and return the events that belong to the selection."""
    events = await client.list(CORE_EVENTS, namespace=view.namespace)
    return History(view.object, view.pods, await list_names(client, view.namespace)).read(events.items, selection)


async def read_disaggregatedset(client: Client, set_view: SetView) -> list[EventValue]:
    """Read the events of a DisaggregatedSet and its objects."""
    events, names = (
        await client.list(CORE_EVENTS, namespace=set_view.namespace),
        await list_names(client, set_view.namespace),
    )
    parts = [History(part.object, part.pods, names) for part in set_view.parts]
    return eventhistory.set_events(set_view.object, parts, events.items)


async def list_names(client: Client, namespace: str) -> list[str]:
    """Return the names of the LeaderWorkerSets in a namespace."""
    listing = await client.list(LEADERWORKERSETS, namespace=namespace)
    return [meta.name(lws) for lws in listing.items]
