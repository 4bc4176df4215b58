"""Parses arguments such as `LWS[/group[/rank]]`, and finds their objects and pods."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from kuberuntime.client.requests import Selection as Query
from kuberuntime.errors import APIError, ForbiddenError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.disaggregatedset import SET_NAME
from leaderworkerset.api.groupname import group_and_rank
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS
from lwsctl.cli import suggestions
from lwsctl.cli.cluster.target import Session
from lwsctl.cli.errors import CommandError, UsageError
from lwsctl.model import leaderworkerset
from lwsctl.model.leaderworkerset import View
from lwsctl.observation import selectedpods
from lwsctl.views.selection import Filter, Selection, narrow, read
from lwsctl.views.wording import format_count, join_names

FEW_NAMES: Final = 4
"""The maximum number of LeaderWorkerSets whose pods are listed separately. For more, all pods are listed."""

KIND_WORDS: Final = frozenset(
    {"lws"}
    | {
        word
        for kind in (LEADERWORKERSETS, DISAGGREGATED_SETS)
        for plain in (kind.kind.lower(), kind.plural)
        for word in (plain, f"{plain}.{kind.group}")
    }
)
"""The kinds that are allowed before a name, as in `kubectl get lws/web`."""

OTHERS: Final = {
    **dict.fromkeys(("pod", "pods", "po"), "use `{lws} get --ranks` to list pods"),
    **dict.fromkeys(("node", "nodes", "no"), "use `{lws} nodes` to list nodes"),
    **dict.fromkeys(("event", "events", "ev"), "use `{lws} events NAME` to list events"),
    **dict.fromkeys(("cluster", "clusters"), "use `lws clusters` to list local clusters"),
}
"""Commands for other kinds that users of kubectl or kind may enter."""

MANY_NAMES: Final = 10
"""The maximum number of names in a not-found message."""


def parse(argument: str) -> Selection:
    """Parse `LWS[/group[/rank]]`. `lws/NAME`, as in kubectl and `-o name`, is also accepted.

    >>> parse("web/1/3"), str(parse("web")), str(parse("leaderworkerset.leaderworkerset.x-k8s.io/web"))
    (Selection(name='web', group=1, rank=3), 'web', 'web')
    """
    parts = argument.split("/")
    if parts[0] in KIND_WORDS and len(parts) > 1 and not parts[1].isdecimal():
        parts = parts[1:]
    selection = read("/".join(parts))
    if selection is None:
        raise UsageError(f"{argument!r} is not a valid path; use LWS, LWS/GROUP or LWS/GROUP/RANK, such as web/0/2")
    return selection


def set_name(argument: str, command: str) -> str:
    """Return the name of a LeaderWorkerSet or DisaggregatedSet.

    Reject groups if the command applies to all groups.
    """
    selection = parse(argument)
    if selection.group is not None:
        raise UsageError(f"lws {command} does not support groups; specify {selection.name}")
    return selection.name


def describe_shape(replicas: int, size: int) -> str:
    """Return a description of the number of groups and ranks.

    >>> describe_shape(1, 2), describe_shape(3, 1)
    ('1 group of 2 ranks', '3 groups of 1 rank')
    """
    return f"{format_count(replicas, 'group')} of {format_count(size, 'rank')}"


async def nothing_found(session: Session, namespace: str, selector: str = "") -> str:
    """Return the message for a namespace without LeaderWorkerSets. It lists the namespaces that contain some."""
    text = f"No LeaderWorkerSets found{f' in namespace {namespace}' if namespace else ''}."
    others = await _namespaces_of(session, label_selector=selector) if namespace else ""
    return (
        f"{text} LeaderWorkerSets exist in {others}; use -n to select a namespace, or -A for all namespaces."
        if others
        else text
    )


async def find(session: Session, name: str) -> JSONObject:
    """Return the LeaderWorkerSet with this name. If it does not exist, the error lists existing LeaderWorkerSets."""
    resource, obj = await find_set(session, name)
    if resource == LEADERWORKERSETS:
        return obj
    raise _is_disaggregatedset_error(name, await list_parts(session, session.namespace, name))


async def find_set(session: Session, name: str) -> tuple[Resource, JSONObject]:
    """Return the LeaderWorkerSet or DisaggregatedSet with this name.

    If none exists, the error lists LeaderWorkerSets.
    """
    key = ObjectKey(session.namespace, name)
    try:
        return LEADERWORKERSETS, await session.client.get(LEADERWORKERSETS, key)
    except NotFoundError as error:
        if "leaderworkersets" not in str(error):
            raise CommandError(
                f"the API server does not serve LeaderWorkerSets; use `{session.lws} install` to install the CRDs and the manager"
            ) from error
        with suppress(NotFoundError, ForbiddenError):
            return DISAGGREGATED_SETS, await session.client.get(DISAGGREGATED_SETS, key)
        raise CommandError(await _not_found(session, name)) from error


async def _not_found(session: Session, name: str) -> str:
    """Return a not-found message with existing LeaderWorkerSets, and other namespaces that contain this name."""
    listing = await session.client.list(LEADERWORKERSETS, namespace=session.namespace)
    names = sorted(map(meta.name, listing.items))
    text = f"leaderworkerset {name!r} not found in namespace {session.namespace}"
    text += f" (existing: {join_names(names, MANY_NAMES) or 'none'})"
    elsewhere = await _namespaces_of(session, field_selector=f"metadata.name={name}")
    if elsewhere:
        return f"{text}; it exists in {elsewhere}; use -n to select it"
    if "-" in name and (place := await _rank_of_pod(session, name)):
        return f"{text}; use {place} for pod {name}"
    if name in OTHERS:
        return f"{text}; {OTHERS[name].format(lws=session.lws)}"
    return text + suggestions.hint(name, names)


async def _rank_of_pod(session: Session, name: str) -> str:
    """Return `LWS/group/rank` for the named pod, or an empty string if it does not exist or cannot be read."""
    try:
        pod = await session.client.get(PODS, ObjectKey(session.namespace, name))
    except APIError:
        return ""
    place = group_and_rank(pod)
    return f"{meta.labels(pod).get(labels.NAME, '')}/{place[0]}/{place[1]}" if place else ""


async def _namespaces_of(session: Session, **selectors: str) -> str:
    """Return the first other namespaces with these LeaderWorkerSets, or none if namespaces cannot be read."""
    try:
        page = await session.client.list_page(Query(LEADERWORKERSETS, **selectors))
    except APIError:  # usually not permitted
        return ""
    return join_names(sorted({meta.namespace(lws) for lws in page.items} - {session.namespace}), FEW_NAMES)


class TargetObjects(Struct, frozen=True):
    """The LeaderWorkerSets and DisaggregatedSets that were found."""

    leaderworkersets: Sequence[JSONObject]
    sets: Sequence[JSONObject]

    @property
    def names(self) -> list[str]:
        """Return the names of the DisaggregatedSets, and of LeaderWorkerSets without a DisaggregatedSet."""
        owners = {meta.uid(obj) for obj in self.sets}
        free = (lws for lws in self.leaderworkersets if (meta.controller_of(lws) or {}).get("uid") not in owners)
        return [*map(meta.name, self.sets), *map(meta.name, free)]


async def list_objects(session: Session, namespace: str, selector: str) -> TargetObjects:
    """Return all objects with the required labels.

    Objects of a DisaggregatedSet are included regardless of labels.
    """
    async with asyncio.TaskGroup() as tasks:
        listed = tasks.create_task(session.client.list(LEADERWORKERSETS, namespace=namespace, label_selector=selector))
        listed_sets = tasks.create_task(list_sets(session, namespace, selector))
    listing, sets = listed.result(), listed_sets.result()
    parts = await list_parts(session, namespace) if sets and selector else []
    owners = {meta.uid(obj) for obj in sets}
    owned = [part for part in parts if (meta.controller_of(part) or {}).get("uid") in owners]
    sets_by_key = {meta.key(lws): lws for lws in (*listing.items, *owned)}
    return TargetObjects([sets_by_key[key] for key in sorted(sets_by_key)], sets)


async def list_sets(session: Session, namespace: str, label_selector: str) -> list[JSONObject]:
    """Return the DisaggregatedSets by namespace and name, or none if they are not served or cannot be read."""
    try:
        listing = await session.client.list(DISAGGREGATED_SETS, namespace=namespace, label_selector=label_selector)
    except (NotFoundError, ForbiddenError):
        return []
    return sorted(listing.items, key=meta.key)


async def list_parts(session: Session, namespace: str, name: str = "") -> list[JSONObject]:
    """Return the LeaderWorkerSets that belong to this DisaggregatedSet, or to any DisaggregatedSet."""
    selector = f"{SET_NAME}={name}" if name else SET_NAME
    listing = await session.client.list(LEADERWORKERSETS, namespace=namespace, label_selector=selector)
    return sorted(listing.items, key=meta.key)


async def list_set_parts(session: Session, selection: Selection) -> list[JSONObject]:
    """Return the LeaderWorkerSets of a DisaggregatedSet. Reject a group, because a DisaggregatedSet has no groups."""
    parts = await list_parts(session, session.namespace, selection.name)
    if selection.group is not None:
        raise _is_disaggregatedset_error(selection.name, parts)
    return parts


def _is_disaggregatedset_error(name: str, parts: Sequence[JSONObject]) -> UsageError:
    names = ", ".join(map(meta.name, parts)) or "none yet"
    return UsageError(f"{name} is a DisaggregatedSet; specify one of its LeaderWorkerSets ({names})")


def require_existing(view: View, selection: Selection) -> None:
    """Reject a group or rank that is not part of the LeaderWorkerSet, regardless of its pod."""
    if selection.group is None or any(group.ranks for group in narrow(view, selection).groups):
        return
    size = max((len(group.ranks) for group in view.groups), default=0)
    raise CommandError(
        f"{selection} does not exist; {view.name} has {describe_shape(len(view.groups) + view.more, size)}"
    )


async def read_view(session: Session, lws: JSONObject) -> View:
    """Read the pods of a LeaderWorkerSet, and return the view of the LeaderWorkerSet."""
    return (await read_views(session, [lws]))[0]


async def read_views(session: Session, leaderworkersets: Sequence[JSONObject]) -> list[View]:
    """Read the pods of LeaderWorkerSets, and return their views.

    A few sets are read by name, and many sets in one list.
    """
    if len(leaderworkersets) <= FEW_NAMES:
        queries = [(meta.namespace(lws), f"{labels.NAME}={meta.name(lws)}") for lws in leaderworkersets]
    else:
        namespaces = {meta.namespace(lws) for lws in leaderworkersets}
        queries = [(namespaces.pop() if len(namespaces) == 1 else "", labels.NAME)]
    pods: list[JSONObject] = []
    for place, selector in dict.fromkeys(queries):
        pods += (await session.client.list(PODS, namespace=place, label_selector=selector)).items
    return leaderworkerset.views_of(leaderworkersets, pods)


async def list_pods(session: Session, selection: Selection) -> list[JSONObject]:
    """Return the selected pods by group and rank.

    If there are none, the error lists the existing groups and ranks.
    """
    lws = await find(session, selection.name)
    pods = await selectedpods.read(session.client, session.namespace, Filter(selection))
    if not pods:
        replicas = meta.spec(lws).get("replicas", 1)
        size = meta.spec(lws)["leaderWorkerTemplate"].get("size", 1)
        raise CommandError(f"{selection} has no pods; {selection.name} has {describe_shape(replicas, size)}")
    return pods


async def find_pod(session: Session, selection: Selection) -> JSONObject:
    """Return the pod of the specified rank, or the leader pod of the specified or first group."""
    group = selection.group
    if group is None and not groupname.uses_random_keys(await find(session, selection.name)):
        group = 0
    return (await list_pods(session, Selection(selection.name, group, selection.rank or 0)))[0]
