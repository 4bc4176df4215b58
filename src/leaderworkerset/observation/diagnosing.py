"""Reads the input of a diagnosis concurrently: of a healthy LeaderWorkerSet only its pods, else what may explain it.

A kind that the user may not read, or that the server fails to list, is noted as not read; one that is not served is
empty. Lists of whole clusters are limited, and longer ones are ignored: a diagnosis never waits for 5,000 nodes.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from kuberuntime.client.client import PAGE, Client
from kuberuntime.client.requests import Selection as Query
from kuberuntime.client.requests import only
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import APIError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    CORE_EVENTS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFULSETS,
    STORAGE_CLASSES,
    Resource,
)
from leaderworkerset.api import labels
from leaderworkerset.api.metadata import LEASE, SELECTOR
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.diagnosis import ranks
from leaderworkerset.diagnosis.causes.schedulinggates import GROUPED, gates
from leaderworkerset.diagnosis.diagnose import diagnose, is_as_wanted
from leaderworkerset.diagnosis.finding import Diagnosis
from leaderworkerset.diagnosis.observed import QUEUED_WORKLOADS, Commands, Observed
from leaderworkerset.observation import explaining
from leaderworkerset.views.events.evidence import Evidence, explained
from leaderworkerset.views.groups import View, view
from leaderworkerset.views.selection import Selection

MOST: Final = 2000
"""The maximum number of objects of a whole cluster that are read: nodes, and pods of all namespaces."""

FEW: Final = 10
"""The maximum number of nodes that are read by name; for more of them the list is cheaper."""

NEWER_WORKLOADS: Final = replace(QUEUED_WORKLOADS, version="v1beta2")


class TooManyError(Exception):
    """A list is longer than the limit."""


@dataclass(frozen=True, slots=True)
class Want:
    """A list to be read; `instead` is read if the first is not served."""

    query: Query
    instead: Resource | None = None


async def explain(
    client: Client, lws: JSONObject, chosen: Selection, commands: Commands, clock: Clock | None = None
) -> Diagnosis:
    """Return the diagnosis of a LeaderWorkerSet, or of a group or rank of it; `commands` are those of its next steps."""
    observed = await observe(client, lws, chosen, clock or SystemClock())
    return diagnose(replace(observed, commands=commands), chosen)


async def observe(client: Client, lws: JSONObject, chosen: Selection, clock: Clock) -> Observed:
    """Read the objects that explain a LeaderWorkerSet."""
    namespace, own = meta.namespace(lws), f"{labels.NAME}={meta.name(lws)}"
    listing = await client.list(PODS, namespace=namespace, label_selector=own)
    return await observe_view(Lists(client), view(lws, listing.items), chosen, clock)


async def observe_view(lists: "Lister", plain: View, chosen: Selection, clock: Clock) -> Observed:
    """Read the objects that explain a LeaderWorkerSet whose pods were read."""
    if is_as_wanted(plain, chosen):
        return Observed(view=plain, now=clock.now())
    reader = Reader(lists)
    async with asyncio.TaskGroup() as tasks:
        for want in wanted(plain):
            tasks.create_task(reader.read(want))
        tasks.create_task(reader.read_nodes(plain))
        running = tasks.create_task(reader.read_running(plain))
    records = [one for one in reader.objects.get(CONTROLLER_REVISIONS, ()) if not _is_revision(one)]
    evidence = Evidence(events=reader.objects.get(CORE_EVENTS, ()), records=records)
    now = clock.now()
    return Observed(
        view=explained([plain], evidence, now)[0],
        now=now,
        objects=reader.objects,
        unread=frozenset(reader.unread),
        running=running.result(),
    )


def wanted(shown: View) -> Iterator[Want]:
    """Yield the lists for a LeaderWorkerSet that is not in its desired state."""
    namespace, own = shown.namespace, f"{labels.NAME}={shown.name}"
    yield Want(explaining.warnings(namespace))
    yield Want(Query(CONTROLLER_REVISIONS, namespace, own))
    yield Want(Query(STATEFULSETS, namespace, own))
    members = [rank for group in shown.groups for rank in group.ranks if not rank.is_ready]
    if any(rank.object is not None for rank in members):
        yield Want(Query(SERVICES, namespace))
    if not meta.is_observed(shown.object) or any(rank.index and rank.object is None for rank in members):
        yield from of_manager()
    if any(map(ranks.is_unscheduled, members)):
        yield from _of_places(shown)
    if any(gates(rank) for rank in members):
        yield Want(Query(QUEUED_WORKLOADS, namespace), NEWER_WORKLOADS)


def of_manager() -> Iterator[Want]:
    """Yield the lists for a manager that may not act."""
    selector = ",".join(f"{key}={value}" for key, value in SELECTOR.items())
    name = f"{LEADERWORKERSETS.plural}.{LEADERWORKERSETS.group}"
    yield Want(Query(DEPLOYMENTS, label_selector=selector))
    yield Want(Query(LEASES, field_selector=f"metadata.name={LEASE}"))
    yield Want(only(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", name)))


def _of_places(shown: View) -> Iterator[Want]:
    namespace = shown.namespace
    yield Want(Query(PERSISTENT_VOLUME_CLAIMS, namespace))
    yield Want(Query(STORAGE_CLASSES))
    for _, kind in GROUPED:
        yield Want(Query(kind, namespace, f"{labels.NAME}={shown.name}"))
    if labels.EXCLUSIVE_TOPOLOGY in meta.annotations(shown.object):
        yield Want(Query(PODS, namespace, labels.GROUP_KEY))


class Lister(Protocol):
    """The source of lists and nodes; errors of the API server, and `TooManyError`, are raised."""

    async def all(self, query: Query) -> Sequence[JSONObject]:
        """Return all objects of a list."""
        ...

    async def bounded(self, query: Query) -> Sequence[JSONObject]:
        """Return a list of at most `MOST` objects."""
        ...

    async def node(self, name: str) -> JSONObject | None:
        """Return a node, None if it does not exist."""
        ...


class Lists:
    """Reads each list from the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def all(self, query: Query) -> list[JSONObject]:
        """Return all objects of a list."""
        listing = await self._client.list(
            query.resource,
            namespace=query.namespace,
            label_selector=query.label_selector,
            field_selector=query.field_selector,
        )
        return listing.items

    async def bounded(self, query: Query) -> list[JSONObject]:
        """Return a list of at most `MOST` objects."""
        page = await self._client.list_page(query, limit=PAGE)
        items = list(page.items)
        while page.token:
            if len(items) >= MOST:
                raise TooManyError(query.resource.group_resource)
            page = await self._client.list_page(query, limit=PAGE, token=page.token)
            items += page.items
        return items

    async def node(self, name: str) -> JSONObject | None:
        """Return a node, None if it does not exist."""
        try:
            return await self._client.get(NODES, ObjectKey("", name))
        except NotFoundError:
            return None


class Reader:
    """Reads lists, and records which could not be read."""

    def __init__(self, lists: Lister) -> None:
        self._lists = lists
        self.objects: dict[Resource, Sequence[JSONObject]] = {}
        self.unread: set[Resource] = set()

    async def read(self, want: Want) -> None:
        """Read one list."""
        resource = want.query.resource
        try:
            self.objects[resource] = await self._list(want)
        except APIError:
            self.unread.add(resource)

    async def read_nodes(self, shown: View) -> None:
        """Read the nodes of ranks that are not ready; all nodes if ranks wait for one."""
        members = [rank for group in shown.groups for rank in group.ranks if not rank.is_ready]
        names = {rank.node for rank in members if rank.node}
        if not members or (not names and not any(map(ranks.is_unscheduled, members))):
            return
        try:
            if len(names) <= FEW and not any(map(ranks.is_unscheduled, members)):
                found = [await self._lists.node(name) for name in sorted(names)]
                self.objects[NODES] = [node for node in found if node is not None]
            else:
                self.objects[NODES] = await self._lists.bounded(Query(NODES))
        except APIError:
            self.unread.add(NODES)
        except TooManyError:
            return

    async def read_running(self, shown: View) -> Sequence[JSONObject] | None:
        """Read the pods of all nodes if a rank waits for resources; None if that is not needed or not possible."""
        short = [rank for group in shown.groups for rank in group.ranks if "Insufficient" in rank.why]
        if not short:
            return None
        try:
            return await self._lists.bounded(Query(PODS))
        except (APIError, TooManyError):
            return None

    async def _list(self, want: Want) -> Sequence[JSONObject]:
        query = want.query
        try:
            return await self._lists.all(query)
        except NotFoundError:
            if want.instead is None:
                return []
        try:
            return await self._lists.all(replace(query, resource=want.instead))
        except NotFoundError:
            return []


def _is_revision(obj: JSONObject) -> bool:
    return labels.TEMPLATE_REVISION_HASH in meta.labels(obj)
