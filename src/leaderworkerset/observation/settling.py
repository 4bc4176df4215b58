"""Reads the input of DisaggregatedSets' own diagnoses: each list once for all sets, and none for complete ones."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kuberuntime.client.requests import Selection as Query
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CORE_EVENTS, Resource
from leaderworkerset.api.resources import DISAGGREGATED_SETS, ROLE_SCALERS
from leaderworkerset.diagnosis.diagnose import diagnose
from leaderworkerset.diagnosis.finding import Diagnosis
from leaderworkerset.diagnosis.observed import Commands, Observed
from leaderworkerset.observation import lists
from leaderworkerset.observation.diagnosing import Reader, Want, of_manager
from leaderworkerset.observation.lists import Lists
from leaderworkerset.views.disaggregation import SetView
from leaderworkerset.views.groups import View
from leaderworkerset.views.selection import Selection


async def diagnose_sets(
    lists: Lists, sets: Sequence[SetView], namespace: str, commands: Commands, clock: Clock | None = None
) -> list[Diagnosis]:
    """Return the diagnosis of each set in order; all are of one namespace, or of any if it is empty."""
    reader = Reader(lists)
    async with asyncio.TaskGroup() as tasks:
        for want in wanted(sets, namespace):
            tasks.create_task(reader.read(want))
    now = (clock or SystemClock()).now()
    shared = {kind: listed for kind, listed in reader.objects.items() if kind not in KEYS}
    arranged = {kind: _arranged(reader.objects[kind], key) for kind, key in KEYS.items() if kind in reader.objects}
    found = []
    for one in sets:
        own = {kind: listed.get(KEYS[kind](one.object), ()) for kind, listed in arranged.items()}
        observed = Observed(
            view=bare(one),
            now=now,
            objects=shared | own,
            unread=frozenset(reader.unread),
            of_set=one,
            commands=commands,
        )
        found.append(diagnose(observed, Selection(one.name)))
    return found


def wanted(sets: Sequence[SetView], namespace: str) -> Iterator[Want]:
    """Yield the lists for sets that are not complete."""
    waiting = [one for one in sets if not one.is_settled]
    if not waiting:
        return
    yield Want(lists.warnings_in(namespace))
    yield Want(Query(ROLE_SCALERS, namespace))
    if not all(meta.is_observed(one.object) for one in waiting):
        yield from of_manager()


def bare(one: SetView) -> View:
    """Return a set as a view without groups: its name and its object."""
    return View(
        name=one.name,
        namespace=one.namespace,
        ready=0,
        desired=0,
        up_to_date=0,
        created=one.created,
        groups=(),
        object=one.object,
    )


def _regarded(obj: JSONObject) -> ObjectKey:
    """Return the key of a DisaggregatedSet, or of the one that an event regards; for other events a key without a set."""
    about = obj.get("involvedObject")
    if about is None:
        return meta.key(obj)
    name = str(about.get("name")) if about.get("kind") == DISAGGREGATED_SETS.kind else ""
    return ObjectKey(str(about.get("namespace") or meta.namespace(obj)), name)


def _placed(obj: JSONObject) -> ObjectKey:
    return ObjectKey(meta.namespace(obj), "")


KEYS: Final[Mapping[Resource, Callable[[JSONObject], ObjectKey]]] = {CORE_EVENTS: _regarded, ROLE_SCALERS: _placed}
"""The keys by which a set finds its part of a list; it gets the whole of other lists."""


def _arranged(
    listed: Iterable[JSONObject], key: Callable[[JSONObject], ObjectKey]
) -> Mapping[ObjectKey, Sequence[JSONObject]]:
    found: dict[ObjectKey, list[JSONObject]] = {}
    for one in listed:
        found.setdefault(key(one), []).append(one)
    return found
