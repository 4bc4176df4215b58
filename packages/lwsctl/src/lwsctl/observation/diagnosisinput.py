"""Reads the input for a diagnosis concurrently.

For a healthy LeaderWorkerSet, only pods are read. Otherwise, related objects are also read.

If the user does not have permission to read a kind, or the server fails to list it, the kind is recorded as unread.
If a kind is not served, its list is empty. Cluster-wide lists are limited, and longer lists are ignored, so that a
diagnosis never waits for 5,000 nodes.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.client.requests import Selection as Query
from kuberuntime.client.requests import select_one
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import APIError, NotFoundError
from kuberuntime.objects import meta, resources
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.metadata import CONFIGURATION, LEASE, MANAGER
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.decisions.failureevents import CONTENTION
from leaderworkerset.decisions.managerconfiguration import podpolicy
from leaderworkerset.decisions.nodefit import VOLCANO_GROUP_NAME
from lwsctl.diagnosis import evictions, groupmoves, ranks
from lwsctl.diagnosis.causes import managers, missingpods, nameconflicts, volumes
from lwsctl.diagnosis.causes.components import autoscalers, podpolicies
from lwsctl.diagnosis.causes.schedulinggates import GROUPED, gate_names
from lwsctl.diagnosis.diagnose import diagnose
from lwsctl.diagnosis.facts import is_as_desired
from lwsctl.diagnosis.observed import QUEUED_WORKLOADS, RESOURCE_QUOTAS, Commands, Observed
from lwsctl.model import crashes
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.events.warningevents import EVICTED, Evidence, explain_views
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.observation import lists
from lwsctl.observation.lists import Lister, TooManyError
from lwsctl.views.selection import Selection

FEW: Final = 10
"""The maximum number of nodes that are read by name. For more nodes, a list request is more efficient."""

STARTED: Final = frozenset({"Running", "Failed"})
"""The pod phases in which containers have run and can resolve names that a Service publishes."""

GANG_MARKS: Final = frozenset({labels.GANG_GROUP, VOLCANO_GROUP_NAME, labels.WORKLOAD_AWARE_SCHEDULING})
"""The annotations of pods in groups that a gang scheduler starts, for lws, Volcano and `spec.scheduling`."""

NEWER_WORKLOADS: Final = replace(QUEUED_WORKLOADS, version="v1beta2")


class ListRequest(Struct, frozen=True):
    """A list to read. If the first resource is not served, `fallback` is read."""

    query: Query
    fallback: Resource | None = None


async def diagnose_one(
    lists: Lister, plain: View, selection: Selection, commands: Commands, clock: Clock | None = None
) -> Diagnosis:
    """Return the diagnosis of a LeaderWorkerSet, group or rank. Its next steps use `commands`."""
    observed = await observe_view(lists, plain, selection, clock or SystemClock())
    if is_as_desired(observed.view, selection, observed.now):
        observed = await _with_contention(lists, observed)
    return diagnose(replace(observed, commands=commands), selection)


async def _with_contention(lists: Lister, observed: Observed) -> Observed:
    """Return the observation of a healthy set with the events about fields that other clients revert."""
    reader, known = Reader(lists), observed.get(resources.CORE_EVENTS)
    query = Query(resources.CORE_EVENTS, observed.view.namespace, field_selector=f"reason={CONTENTION}")
    await reader.read(ListRequest(query))
    events = (*known, *reader.objects.get(resources.CORE_EVENTS, ()))
    return replace(observed, objects={**observed.objects, resources.CORE_EVENTS: events})


async def observe_view(
    lists: Lister, plain: View, selection: Selection, clock: Clock, *, is_brief: bool = False
) -> Observed:
    """Read the objects that explain a LeaderWorkerSet whose pods were read.

    A brief diagnosis omits resource amounts.
    """
    reader, now = Reader(lists), clock.now()
    if is_as_desired(plain, selection, now):
        known = plain if crashes.has_no_recent_failures(plain, now) else await _with_history(reader, plain, now)
        if is_as_desired(known, selection, now):
            if evictions.uses_only_budgets(plain):
                own = f"{labels.NAME}={plain.name}"
                await reader.read(ListRequest(Query(resources.POD_DISRUPTION_BUDGETS, plain.namespace, own)))
            return Observed(view=known, now=now, objects=reader.objects)
    async with asyncio.TaskGroup() as tasks:
        for want in required_lists(plain):
            tasks.create_task(reader.read(want))
        tasks.create_task(reader.read_nodes(plain))
        tasks.create_task(reader.read_leader_deployment(plain))
        running = tasks.create_task(reader.read_running(plain)) if not is_brief else None
    revisions = reader.objects.get(resources.CONTROLLER_REVISIONS, ())
    records = [obj for obj in revisions if labels.TEMPLATE_REVISION_HASH not in meta.labels(obj)]
    evidence = Evidence(events=reader.objects.get(resources.CORE_EVENTS, ()), records=records)
    now = clock.now()
    observed = Observed(
        view=explain_views([plain], evidence, now)[0],
        now=now,
        objects=reader.objects,
        unread_kinds=frozenset(reader.unread),
        running_pods=None if running is None else running.result(),
        leader_deployment=reader.leader_deployment,
    )
    if name := missingpods.first_overdue_pod(observed):
        observed = replace(observed, namesake=await reader.find_pod(ObjectKey(plain.namespace, name)))
    if not (wants := list(_evidence_lists(observed))):
        return observed
    async with asyncio.TaskGroup() as tasks:
        for want in wants:
            tasks.create_task(reader.read(want))
    return replace(observed, objects=reader.objects, unread_kinds=frozenset(reader.unread))


async def _with_history(reader: "Reader", view: View, now: datetime) -> View:
    """Add recreations and evictions to a view. Groups of the view may have failed recently."""
    await reader.read(ListRequest(lists.records_of(view.namespace, view.name)))
    await reader.read(ListRequest(Query(resources.CORE_EVENTS, view.namespace, field_selector=f"reason={EVICTED}")))
    records = reader.objects.get(resources.CONTROLLER_REVISIONS, ())
    events = reader.objects.get(resources.CORE_EVENTS, ())
    return explain_views([view], Evidence(events=events, records=records), now)[0]


def required_lists(view: View) -> Iterator[ListRequest]:
    """Yield the lists that causes require for a LeaderWorkerSet that is not in its desired state."""
    namespace, own = view.namespace, f"{labels.NAME}={view.name}"
    yield ListRequest(lists.events_in(namespace))
    members = view.unready
    is_changing = meta.is_deleting(view.object) or view.is_updating or len(view.groups) != view.desired
    # if all members are ready, the status may be older than the pods
    if is_changing or not members or not meta.is_observed(view.object) or any(map(_is_pending_creation, members)):
        yield ListRequest(Query(resources.CONTROLLER_REVISIONS, namespace, own))
        yield ListRequest(Query(resources.STATEFULSETS, namespace, own))
    else:
        yield ListRequest(lists.records_of(namespace, view.name))
    if any(map(_has_started, members)):
        yield ListRequest(Query(resources.SERVICES, namespace))
    if not meta.is_observed(view.object) or any(map(_awaits_manager, view.groups)):
        yield from manager_lists()
    if waiting := list(filter(ranks.is_unscheduled, members)):
        yield from _placement_lists(view, waiting)
    elif any(rank.node and not _has_started(rank) and volumes.claim_names(rank) for rank in members):
        yield ListRequest(Query(resources.PERSISTENT_VOLUME_CLAIMS, namespace))
    if any(gate_names(rank) for rank in members):
        yield ListRequest(Query(QUEUED_WORKLOADS, namespace), NEWER_WORKLOADS)


def _has_started(rank: Rank) -> bool:
    return meta.status(rank.object or {}).get("phase") in STARTED


def _evidence_lists(observed: Observed) -> Iterator[ListRequest]:
    """Yield additional lists that events suggest."""
    if autoscalers.nominated_node_claims(observed):
        yield ListRequest(Query(autoscalers.NODE_CLAIMS))
    if nameconflicts.statefulsets_without_revision(observed):
        yield ListRequest(Query(RESOURCE_QUOTAS, observed.view.namespace))
    if podpolicies.first_rejected_rank(observed):
        yield from _pod_policy_lists()
    if managers.find_rejected_pod(observed) and not observed.was_read(resources.DEPLOYMENTS):
        yield from manager_lists()


def _is_pending_creation(rank: Rank) -> bool:
    """Return whether a rank has no pod, or a pod that is about to be replaced."""
    return rank.object is None or meta.is_deleting(rank.object)


def _awaits_manager(group: Group) -> bool:
    """Return whether the manager must create workers for a group, because its leader is scheduled."""
    has_leader = group.leader is not None and group.leader.node
    return bool(has_leader) and any(rank.index and rank.object is None for rank in group.ranks)


def manager_lists() -> Iterator[ListRequest]:
    """Yield the lists about a manager that may be inactive."""
    name = f"{LEADERWORKERSETS.plural}.{LEADERWORKERSETS.group}"
    yield ListRequest(Query(resources.DEPLOYMENTS, field_selector=f"metadata.name={MANAGER}"))
    yield ListRequest(Query(resources.LEASES, field_selector=f"metadata.name={LEASE}"))
    yield ListRequest(select_one(resources.CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", name)))


def _pod_policy_lists() -> Iterator[ListRequest]:
    """Yield the lists about the pod admission policy and the configuration that requires it."""
    yield ListRequest(Query(resources.CONFIG_MAPS, field_selector=f"metadata.name={CONFIGURATION}"))
    for kind in podpolicy.KINDS:
        yield ListRequest(select_one(kind, podpolicy.KEY))


def _placement_lists(view: View, waiting: Sequence[Rank]) -> Iterator[ListRequest]:
    namespace = view.namespace
    if any(map(volumes.claim_names, waiting)):
        yield ListRequest(Query(resources.PERSISTENT_VOLUME_CLAIMS, namespace))
        yield ListRequest(Query(resources.STORAGE_CLASSES))
    if any(GANG_MARKS & meta.annotations(pod).keys() for pod in view.pods):
        for _, kind in GROUPED:
            yield ListRequest(Query(kind, namespace, f"{labels.NAME}={view.name}"))
    if labels.EXCLUSIVE_TOPOLOGY in meta.annotations(view.object):
        yield ListRequest(Query(resources.PODS, namespace, labels.GROUP_KEY))


class Reader:
    """Reads lists, and records the lists that cannot be read."""

    def __init__(self, lists: Lister) -> None:
        self._lists = lists
        self.objects: dict[Resource, Sequence[JSONObject]] = {}
        self.unread: set[Resource] = set()
        self.leader_deployment: JSONObject | None = None

    async def read(self, want: ListRequest) -> None:
        """Read one list."""
        resource = want.query.resource
        try:
            self.objects[resource] = await self._list(want)
        except APIError:
            self.unread.add(resource)

    async def read_nodes(self, view: View) -> None:
        """Read the nodes of unready or moving ranks. If ranks wait for a node, read all nodes."""
        is_moving = groupmoves.is_moving(view)
        members = view.ranks if is_moving else view.unready
        names = {rank.node for rank in members if rank.node}
        if not members or (not names and not any(map(ranks.is_unscheduled, members))):
            return
        try:
            if len(names) <= FEW and not any(map(ranks.is_unscheduled, members)):
                nodes = [await self._lists.node(name) for name in sorted(names)]
                self.objects[resources.NODES] = [node for node in nodes if node is not None]
            else:
                self.objects[resources.NODES] = await self._lists.list_bounded(Query(resources.NODES))
        except APIError:
            self.unread.add(resources.NODES)
        except TooManyError:
            return

    async def read_leader_deployment(self, view: View) -> None:
        """Read the leader Deployment of groups with random keys."""
        if not groupname.uses_random_keys(view.object):
            return
        try:
            deployments = await self._lists.all(
                Query(resources.DEPLOYMENTS, view.namespace, f"{labels.NAME}={view.name}")
            )
        except APIError:
            self.unread.add(resources.DEPLOYMENTS)
        else:
            self.leader_deployment = next((obj for obj in deployments if meta.name(obj) == view.name), None)

    async def find_pod(self, key: ObjectKey) -> JSONObject | None:
        """Return a pod, or None if it does not exist or cannot be read."""
        try:
            return next(iter(await self._lists.all(select_one(resources.PODS, key))), None)
        except APIError:
            return None

    async def read_running(self, view: View) -> Sequence[JSONObject] | None:
        """Read the pods on all nodes if a rank waits for resources.

        Return None if they are not required or not readable.
        """
        short = [rank for rank in view.ranks if "Insufficient" in rank.why]
        if not short:
            return None
        try:
            return await self._lists.list_bounded(Query(resources.PODS))
        except (APIError, TooManyError):
            return None

    async def _list(self, want: ListRequest) -> Sequence[JSONObject]:
        query = want.query
        try:
            return await self._lists.all(query)
        except NotFoundError:
            if want.fallback is None:
                return []
        try:
            return await self._lists.all(replace(query, resource=want.fallback))
        except NotFoundError:
            return []
