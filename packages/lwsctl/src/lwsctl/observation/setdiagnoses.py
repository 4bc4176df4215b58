"""Diagnoses many LeaderWorkerSets together. Each list is read once for all LeaderWorkerSets.

The lists for one LeaderWorkerSet are selected from the shared lists. Therefore, hundreds of diagnoses require only a
dozen requests, and the time for each diagnosis depends only on its own objects and events.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.client.requests import Selection as Query
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CORE_EVENTS, NODES
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.resources import ROLE_SCALERS
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.observed import Commands, Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.leaderworkerset import View
from lwsctl.observation import lists
from lwsctl.observation.diagnosisinput import FEW, ListRequest, Reader, manager_lists, observe_view
from lwsctl.observation.lists import Lists, TooManyError
from lwsctl.views.selection import Selection

Keys: TypeAlias = Callable[[JSONObject], Iterable[ObjectKey]]
"""The keys of an object, which are LeaderWorkerSet keys, or a namespace without a name."""

Arranged: TypeAlias = Mapping[ObjectKey, Sequence[JSONObject]]


async def survey(
    lists: Lists,
    views: Sequence[View],
    namespace: str,
    commands: Commands,
    clock: Clock | None = None,
    *,
    is_brief: bool = False,
) -> list[Diagnosis]:
    """Return the diagnosis of each view in order.

    All views are in `namespace`, or in any namespace if it is empty.
    """
    shared = SharedLists(lists, namespace, [view.key for view in views])
    moment = clock or SystemClock()
    diagnoses = []
    for view in views:
        selection = Selection(view.name)
        own = OwnLists(shared, view.key)
        observed = await observe_view(own, view, selection, moment, is_brief=is_brief)
        diagnoses.append(diagnose(replace(observed, commands=commands), selection))
    return diagnoses


class ListResult(Struct, frozen=True):
    """The objects in a list, or the error from reading it."""

    objects: Arranged
    error: Exception | None = None


class SharedLists:
    """Lists for all LeaderWorkerSets in one or all namespaces. Each list is read once."""

    def __init__(self, lists: Lists, namespace: str, keys: Sequence[ObjectKey]) -> None:
        self._lists = lists
        self._namespace = namespace
        self._keys = frozenset(keys)
        self._lengths = frozenset(key.name.count("-") + 1 for key in keys)
        self._responses: dict[tuple[Query, bool], ListResult] = {}

    def widen_query(self, query: Query) -> Query:
        """Return the query for all LeaderWorkerSets that includes a query for one LeaderWorkerSet."""
        own, comma, others = query.label_selector.partition(",")
        namespace = self._namespace if query.namespace else ""
        name, _, _ = own.partition("=")
        wide = f"{name}{comma}{others}" if name == labels.NAME else query.label_selector
        return replace(query, namespace=namespace, label_selector=wide)

    async def read(self, query: Query, keys: Keys, *, is_bounded: bool = False) -> Arranged:
        """Return the objects by their keys, or raise the error from reading them."""
        response = self._responses.get((query, is_bounded))
        if response is None:
            response = self._responses[query, is_bounded] = await self._request(query, keys, is_bounded=is_bounded)
        if response.error is not None:
            raise response.error
        return response.objects

    async def _request(self, query: Query, keys: Keys, *, is_bounded: bool) -> ListResult:
        try:
            objects = await (self._lists.list_bounded if is_bounded else self._lists.all)(query)
        except (APIError, TooManyError) as error:
            return ListResult({}, error)
        by_key: dict[ObjectKey, list[JSONObject]] = {}
        for obj in objects:
            for key in keys(obj):
                by_key.setdefault(key, []).append(obj)
        return ListResult(by_key)

    async def node(self, name: str) -> JSONObject | None:
        """Read one node if there are too many nodes to read the whole list. For many sets, raise an error."""
        if len(self._keys) > FEW:
            raise TooManyError(NODES.group_resource)
        return await self._lists.node(name)

    def possible_owners(self, event: JSONObject) -> Iterator[ObjectKey]:
        """Yield the possible LeaderWorkerSet keys of an event. For `data-web-0`, `web` is one of them.

        The names of pods, claims, PodGroups and Workloads contain the name of their LeaderWorkerSet, separated by
        dashes.
        """
        about = event.get("involvedObject") or {}
        namespace = about.get("namespace") or meta.namespace(event)
        words = str(about.get("name") or "").split("-")
        parts = ("-".join(words[at : at + length]) for length in self._lengths for at in range(len(words) - length + 1))
        yield from {key for part in parts if (key := ObjectKey(namespace, part)) in self._keys}


class OwnLists(Struct, frozen=True):
    """The part of the shared lists that belongs to one LeaderWorkerSet."""

    shared: SharedLists
    key: ObjectKey

    async def all(self, query: Query) -> Sequence[JSONObject]:
        """Return the objects in a list that belong to the LeaderWorkerSet or to its namespace."""
        wide = self.shared.widen_query(query)
        if wide.label_selector != query.label_selector:
            return (await self.shared.read(wide, _keys_by_label)).get(self.key, ())
        if query.resource == CORE_EVENTS:
            return (await self.shared.read(wide, self.shared.possible_owners)).get(self.key, ())
        keys = _keys_by_namespace if query.namespace else _no_keys
        return (await self.shared.read(wide, keys)).get(ObjectKey(query.namespace, ""), ())

    async def list_bounded(self, query: Query) -> Sequence[JSONObject]:
        """Return a list in all namespaces that has at most `MOST` objects."""
        keys = _keys_by_node if query.resource == NODES else _no_keys
        return (await self.shared.read(query, keys, is_bounded=True)).get(ObjectKey("", ""), ())

    async def node(self, name: str) -> JSONObject | None:
        """Return a node, or None if it does not exist. All nodes are read, because other sets also require them."""
        try:
            nodes = await self.shared.read(Query(NODES), _keys_by_node, is_bounded=True)
        except TooManyError:
            return await self.shared.node(name)
        return next(iter(nodes.get(ObjectKey("", name), ())), None)


def _keys_by_label(obj: JSONObject) -> Iterable[ObjectKey]:
    return (groupname.lws_key(obj),)


def _keys_by_namespace(obj: JSONObject) -> Iterable[ObjectKey]:
    return (ObjectKey(meta.namespace(obj), ""),)


def _keys_by_node(node: JSONObject) -> Iterable[ObjectKey]:
    return (ObjectKey("", meta.name(node)), ObjectKey("", ""))


def _no_keys(_: JSONObject) -> Iterable[ObjectKey]:
    return (ObjectKey("", ""),)


async def diagnose_sets(
    lists: Lists, sets: Sequence[SetView], namespace: str, commands: Commands, clock: Clock | None = None
) -> list[Diagnosis]:
    """Return the diagnosis of each set in order. All sets are in `namespace`, or in any namespace if it is empty."""
    shared = SharedLists(lists, namespace, [item.key for item in sets])
    moment = clock or SystemClock()
    diagnoses = []
    for set_view in sets:
        reader = Reader(OwnLists(shared, set_view.key))
        async with asyncio.TaskGroup() as tasks:
            for want in required_lists(set_view):
                tasks.create_task(reader.read(want))
        observed = Observed(
            view=bare(set_view),
            now=moment.now(),
            objects=reader.objects,
            unread_kinds=frozenset(reader.unread),
            set_view=set_view,
            commands=commands,
        )
        diagnoses.append(diagnose(observed, Selection(set_view.name)))
    return diagnoses


def required_lists(set_view: SetView) -> Iterator[ListRequest]:
    """Yield the lists for a DisaggregatedSet, or no lists if the set is complete."""
    if set_view.is_settled:
        return
    yield ListRequest(lists.events_in(set_view.namespace))
    yield ListRequest(Query(ROLE_SCALERS, set_view.namespace))
    if not meta.is_observed(set_view.object):
        yield from manager_lists()


def bare(set_view: SetView) -> View:
    """Return a view of a set with its name and object but without groups."""
    return View(
        name=set_view.name,
        namespace=set_view.namespace,
        ready=0,
        desired=0,
        up_to_date=0,
        created=set_view.created,
        groups=(),
        object=set_view.object,
    )
