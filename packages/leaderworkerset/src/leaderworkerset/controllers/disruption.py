"""Implements the controller for disruption budgets. It observes objects and calls `capabilities/disruption/`.

Its keys are LeaderWorkerSets. The status of a budget shows whether its group is whole, so only leaders and pods on
closed nodes count. Before a budget is opened, the budgets are read from the API server, because the response to an
earlier write may be lost and the cache may be stale. Only a manager whose configuration enables budgets runs this
controller.
"""

import asyncio
from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

from msgspec.structs import replace

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS
from kuberuntime.plan import Plan
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.groupname import is_leader
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.capabilities.disruption.reconcile import (
    ObservedDisruption,
    allows_evictions,
    is_closed,
    is_cordoned,
    reconcile,
    rejects_pod,
)
from leaderworkerset.controllers import cachedfields, indexes, permissions
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.controllers.decisioncost import is_large
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.core.leaderworkerset.groupstate import original_size

NAME: Final = "disruption"
INTERVAL_PER_BUDGET: Final = 0.001
"""The seconds per group until the next reconciliation.

A large set changes continuously while it starts, and one decision takes 50 µs per group.
"""

TICK: Final = 0.0005
"""The minimum delay in seconds. Shorter delays are skipped, because timers can fire early."""

BY_LWS: Final = "pods"
MARKED: Final = "marked"


def marked_values(pod: JSONObject) -> Iterable[str]:
    """Index a marked pod by its LeaderWorkerSet."""
    return indexes.lws_values(pod) if labels.MARKED_STARTING in meta.annotations(pod) else ()


BUDGET_CACHE: Final = Cache(
    indexes.labeled_selection(POD_DISRUPTION_BUDGETS),
    {indexes.BY_LWS: indexes.lws_values},
    keep=cachedfields.same_fields(cachedfields.DISRUPTION_BUDGET),
)
POD_CACHE: Final = Cache(
    indexes.POD_CACHE.selection,
    {
        indexes.LEADERS: indexes.leader_values,
        indexes.BY_NODE: indexes.node_values,
        BY_LWS: indexes.lws_values,
        MARKED: marked_values,
    },
    keep=cachedfields.same_fields(cachedfields.EVICTABLE_POD),
)


class ClosedNodes:
    """The nodes that are being drained, by name. They are updated by watch events."""

    def __init__(self, nodes: Informer) -> None:
        self.by_name: dict[str, JSONObject] = {}
        nodes.subscribe(self._handle_change)

    def _handle_change(self, change: Change) -> None:
        if change.new is not None and is_closed(change.new):
            self.by_name[meta.name(change.new)] = change.new
        else:
            self.by_name.pop(meta.name(change.object), None)


class DisruptionDriver(Driver):
    """Observes the budgets of a LeaderWorkerSet, and evictions that are waiting for them."""

    def __init__(self, caches: Caches, client: Client, clock: Clock, settings: DisruptionSettings) -> None:
        self._sets = caches[indexes.LEADERWORKERSET_CACHE]
        self._pods = caches[POD_CACHE]
        self._budgets = caches[BUDGET_CACHE]
        self._revisions = caches[indexes.REVISION_CACHE]
        self._nodes = caches[indexes.CLOSABLE_NODE_CACHE] if settings.watches_nodes else None
        self._closed = ClosedNodes(self._nodes) if self._nodes is not None else None
        self._client = client
        self._clock = clock
        self._settings = settings
        self._decided: dict[ObjectKey, float] = {}
        """The monotonic time of the last reconciliation of each LeaderWorkerSet."""

    async def plan(self, key: ObjectKey) -> Plan:
        """Reconcile one LeaderWorkerSet. Budgets are opened only based on the current API server state."""
        obj = self._sets.store.get(key)
        if obj is None:
            self._decided.pop(key, None)
            return Plan()
        observed, now = self._observe(key, obj), self._clock.monotonic()
        left = self._decided.get(key, -inf) + INTERVAL_PER_BUDGET * len(observed.budgets) - now
        if left > TICK:
            return Plan(requeue_after=left)
        self._decided[key] = now
        plan = await self._reconcile(observed)
        if not allows_evictions(plan):
            return plan
        selector = f"{labels.NAME}={key.name}"
        listing = await self._client.list(POD_DISRUPTION_BUDGETS, namespace=key.namespace, label_selector=selector)
        return await self._reconcile(replace(observed, budgets=listing.items))

    async def _reconcile(self, observed: ObservedDisruption) -> Plan:
        """Compute the plan, in a thread if there are many groups."""
        if is_large((observed.obj,), len(observed.leaders) + len(observed.budgets) + len(observed.pods)):
            return await asyncio.to_thread(reconcile, observed, self._settings)
        return reconcile(observed, self._settings)

    def watches(self) -> Sequence[Watch]:
        """Return the watches, and the LeaderWorkerSets that are enqueued after changes."""
        nodes = () if self._nodes is None else (Watch(self._nodes, self._keys_of_node),)
        return (
            Watch(self._sets, lambda change: (meta.key(change.object),)),
            Watch(self._budgets, lambda change: (groupname.lws_key(change.object),)),
            Watch(self._pods, self._keys_of_pod),
            Watch(self._revisions, keys_of_record),
            *nodes,
        )

    def _observe(self, key: ObjectKey, obj: JSONObject) -> ObservedDisruption:
        return ObservedDisruption(
            obj=obj,
            leaders=self._pods.store.by_index(indexes.LEADERS, str(key)),
            budgets=self._budgets.store.by_index(indexes.BY_LWS, str(key)),
            groups_to_move=self._groups_to_move(key),
            now=self._clock.now(),
            pods=self._pods_to_mark(key, obj),
            records=self._revisions.store.by_index(indexes.RECORDS, str(key)),
            is_draining=self._closed is not None and any(map(is_cordoned, self._closed.by_name.values())),
        )

    def _pods_to_mark(self, key: ObjectKey, obj: JSONObject) -> Sequence[JSONObject]:
        """Return all pods if some must be marked. Otherwise, return only the marked pods."""
        pods = self._pods.store
        return pods.by_index(BY_LWS if labels.DO_NOT_DISRUPT in meta.annotations(obj) else MARKED, str(key))

    def _groups_to_move(self, key: ObjectKey) -> frozenset[str]:
        """Return the labels of groups with a pod whose node no longer accepts it."""
        closed = {} if self._closed is None else self._closed.by_name
        return frozenset(
            groupname.group_label(pod)
            for name, node in closed.items()
            for pod in self._pods.store.by_index(indexes.BY_NODE, name)
            if groupname.lws_key(pod) == key and rejects_pod(node, pod)
        )

    def _keys_of_pod(self, change: Change) -> Iterable[ObjectKey]:
        """Map an added, deleted or resized leader, or any pod on a closed node, to its LeaderWorkerSet."""
        closed = {} if self._closed is None else self._closed.by_name
        versions = [pod for pod in (change.old, change.new) if pod is not None]
        has_moved = any(meta.spec(pod).get("nodeName") in closed for pod in versions) and len(versions) == 1
        has_news = is_leader(change.object) and _relevant_fields(change.old) != _relevant_fields(change.new)
        key = groupname.lws_key(change.object)
        starts = change.old is None and labels.DO_NOT_DISRUPT in meta.annotations(self._sets.store.get(key) or {})
        return (key,) if has_moved or has_news or starts else ()

    def _keys_of_node(self, change: Change) -> Iterable[ObjectKey]:
        """Map a closed or reopened node to the LeaderWorkerSets with pods on it."""
        versions = [meta.spec(node) for node in (change.old, change.new) if node is not None]
        if len(versions) == 2 and versions[0] == versions[1]:
            return ()
        return {groupname.lws_key(pod) for pod in self._pods.store.by_index(indexes.BY_NODE, meta.name(change.object))}


def keys_of_record(change: Change) -> Iterable[ObjectKey]:
    """Map a record with a new leader to its LeaderWorkerSet, because the group of that leader failed."""
    return (groupname.lws_key(change.object),) if indexes.is_leader_changed(change) else ()


def _relevant_fields(leader: JSONObject | None) -> tuple[str, bool, bool, int] | None:
    if leader is None:
        return None
    return meta.uid(leader), meta.is_deleting(leader), groupname.is_exhausted(leader), original_size(leader)


def specify(settings: DisruptionSettings) -> ControllerSpec:
    """Return a controller with these settings."""

    def build(caches: Caches, client: Client, clock: Clock) -> DisruptionDriver:
        return DisruptionDriver(caches, client, clock, settings)

    nodes = (indexes.CLOSABLE_NODE_CACHE,) if settings.watches_nodes else ()
    caches = (indexes.LEADERWORKERSET_CACHE, POD_CACHE, BUDGET_CACHE, indexes.REVISION_CACHE, *nodes)
    return ControllerSpec(name=NAME, caches=caches, build=build, writes=permissions.DISRUPTION)
