"""Reads lists and nodes for views and diagnoses without repeated requests.

The size of cluster-wide lists is limited.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from kuberuntime.client.client import PAGE, Client
from kuberuntime.client.requests import Selection as Query
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ForbiddenError
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, CORE_EVENTS, NODES
from leaderworkerset.api import labels
from lwsctl.model.events.warningevents import Evidence, explain_views, wants_events
from lwsctl.model.leaderworkerset import View

MOST: Final = 2000
"""The maximum number of objects in cluster-wide lists of nodes or pods."""


class TooManyError(Exception):
    """Raised if a list exceeds the limit."""


class Lister(Protocol):
    """The source of lists and nodes. It raises API errors and `TooManyError`."""

    async def all(self, query: Query) -> Sequence[JSONObject]:
        """Return all objects of a list."""

    async def list_bounded(self, query: Query) -> Sequence[JSONObject]:
        """Return a list that has at most `MOST` objects."""

    async def node(self, name: str) -> JSONObject | None:
        """Return a node, or None if it does not exist."""


class Lists:
    """Reads lists from the API server. Each instance reads each list only once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read: dict[Query, list[JSONObject]] = {}

    async def all(self, query: Query) -> list[JSONObject]:
        """Return all objects of a list."""
        if query not in self._read:
            listing = await self._client.list(
                query.resource,
                namespace=query.namespace,
                label_selector=query.label_selector,
                field_selector=query.field_selector,
            )
            self._read[query] = listing.items
        return self._read[query]

    async def list_bounded(self, query: Query) -> list[JSONObject]:
        """Return a list that has at most `MOST` objects."""
        page = await self._client.list_page(query, limit=PAGE)
        items = list(page.items)
        while page.token:
            if len(items) >= MOST:
                raise TooManyError(query.resource.group_resource)
            page = await self._client.list_page(query, limit=PAGE, token=page.token)
            items += page.items
        return items

    async def node(self, name: str) -> JSONObject | None:
        """Return a node, or None if it does not exist."""
        return await self._client.find(NODES, ObjectKey("", name))


EVERY_START: Final = ("Scheduled", "Created", "Started", "SuccessfulCreate", "SuccessfulDelete")
"""The reasons of frequent events that occur for all pods and do not explain problems."""

TELLING: Final = ",".join(f"reason!={reason}" for reason in EVERY_START)


def events_in(namespace: str) -> Query:
    """Return the query for events in one or all namespaces that may explain a problem."""
    return Query(CORE_EVENTS, namespace, field_selector=TELLING)


def records_of(namespace: str, name: str = "") -> Query:
    """Return the query for recreation records of one LeaderWorkerSet or of all LeaderWorkerSets.

    Records are ControllerRevisions without the revision label.
    """
    whose = f"{labels.NAME}={name}" if name else labels.NAME
    return Query(CONTROLLER_REVISIONS, namespace, label_selector=f"{whose},!{labels.TEMPLATE_REVISION_HASH}")


async def with_evidence(lists: Lists, views: Sequence[View], namespace: str) -> list[View]:
    """Return the views with the evidence. Events are listed only if any object is not ready."""
    events = await _list_if_permitted(lists, events_in(namespace)) if wants_events(views) else []
    evidence = Evidence(events=events, records=await _list_if_permitted(lists, records_of(namespace)) if views else [])
    return explain_views(views, evidence, SystemClock().now())


async def _list_if_permitted(lists: Lists, query: Query) -> list[JSONObject]:
    """List objects. If the user does not have permission, return an empty list."""
    try:
        return await lists.all(query)
    except ForbiddenError:
        return []
