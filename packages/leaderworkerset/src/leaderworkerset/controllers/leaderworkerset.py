"""Implements the LeaderWorkerSet controller, which observes objects and calls the core (R-ARC-7).

In addition to the watches of the Go controller, it watches leader pods and revisions. Two watches are not ordered
relative to each other, so a count after a change of the StatefulSet can be based on older pods. A change that does not
alter the state of a group does not enqueue a key.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.controller.writes import ObjectWrite, Write
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import DEPLOYMENTS, STATEFULSETS
from kuberuntime.plan import Actions, Plan, PutStatus, flatten, without
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import AVAILABLE
from leaderworkerset.api.groupname import is_leader
from leaderworkerset.api.policytypes import WITH_OWN_SERVICES, WITH_RANDOM_KEYS
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import names
from leaderworkerset.capabilities.deciding import describe_group
from leaderworkerset.capabilities.enabled import EXTENSIONS
from leaderworkerset.controllers import gangobjects, groupservices, indexes, leaderreads, maintenancenodes, permissions
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.decisioncost import is_large
from leaderworkerset.controllers.gangobjects import GangObjects, gang_caches, gang_permissions
from leaderworkerset.controllers.groupcache import GroupCache
from leaderworkerset.controllers.maintenancenodes import MaintenanceNodes
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.controllers.terminatinggroups import TerminatingGroups
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.leaderworkerset import groupstate, services
from leaderworkerset.core.leaderworkerset.cachedapply import Identity, LastApply, Source
from leaderworkerset.core.leaderworkerset.decision import (
    NO_RESULTS,
    Decision,
    ObservedLeaderWorkerSet,
    PreviousResults,
)
from leaderworkerset.core.leaderworkerset.gatedleaders import GatedLeaders
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, Workers, describe_workers
from leaderworkerset.core.leaderworkerset.outline import build_outline
from leaderworkerset.core.leaderworkerset.reconcile import reconcile
from leaderworkerset.core.policies import delegation, workloadnames
from leaderworkerset.core.policies.gang import Gang
from leaderworkerset.core.policies.policy import NOT_SCHEDULED
from leaderworkerset.core.restarts import retention

NAME: Final = "leaderworkerset"

LEADER_WORKLOADS: Final = (STATEFULSETS, DEPLOYMENTS)
"""The leader workload kinds. For each LeaderWorkerSet, the controller creates one object of one of these kinds."""

STATUS_DELAY: Final = 0.2
"""The delay in seconds before writing a status whose counts changed, unless there are further changes."""

MAX_STATUS_DELAY: Final = 1.0
"""The maximum delay in seconds of such a status while the counts continue to change."""

STARTUP_STATUS_INTERVAL: Final = 2.0
"""The interval in seconds between status writes for existing or updated groups during startup.

A group soon becomes ready, which changes the status again.
"""

MAX_LOSS_DELAY: Final = 1.0
"""The maximum delay of a status in seconds until the leader of a group with a lost worker is terminating."""

RECONCILE_INTERVAL: Final = 0.05
"""The seconds in which several changes cause one reconciliation, because most of them only change counts."""

TICK: Final = 0.001
"""The minimum delay in seconds. Shorter delays are skipped, because timers can fire early."""


class Memory(Struct):
    """The results of earlier reconciliations of one LeaderWorkerSet, and the source of the current plan."""

    known: PreviousResults = NO_RESULTS
    source: Source | None = None
    surplus: Mapping[str, bool] = field(default_factory=dict)
    status: JSONObject | None = None
    """A pending status, or the last written status."""
    changed_at: float = 0.0
    written_at: float = -inf

    def delay_status(self, plan: Plan, stored: JSONObject, now: float, last_loss: float = -inf) -> Plan:
        """Delay a status that only changes counts of `stored` while more changes are likely.

        A status that changes conditions (also the first status of a generation) is written immediately. However, every
        status waits until the groups that lost workers are being recreated, because a later manager needs the previous
        status (ADR 14).
        """
        write = next((action for action in flatten(plan.actions) if isinstance(action, PutStatus)), None)
        if write is None:
            return plan
        if (left := last_loss + MAX_LOSS_DELAY - now) > TICK:
            return replace(plan, actions=without(plan.actions, write)).with_requeue_limit(left)
        if write.on_success:
            return plan
        status = meta.status(write.object)
        if status != self.status:
            self.status, self.changed_at = status, now
        is_starting = not meta.is_condition_true(write.object, AVAILABLE.type) and _ready(status) == _ready(stored)
        due = (
            self.written_at + STARTUP_STATUS_INTERVAL
            if is_starting
            else min(self.changed_at + STATUS_DELAY, self.written_at + MAX_STATUS_DELAY)
        )
        left = due - now
        if left <= TICK:
            return plan
        return replace(plan, actions=without(plan.actions, write)).with_requeue_limit(left)


def _ready(status: JSONObject) -> int:
    return status.get("readyReplicas") or 0


class LeaderWorkerSetDriver(Driver):
    """Observes LeaderWorkerSets in the caches. Objects that only some plans require are read on demand."""

    def __init__(
        self, caches: Caches, client: Client, clock: Clock, gang: Gang, capabilities: Mapping[str, Any]
    ) -> None:
        self._client = client
        self._informers = informers = indexes.informers_of(caches)
        self._sets, self._pods = informers.leaderworkersets.store, informers.pods.store
        self._services, self._revisions = informers.services.store, informers.revisions.store
        self._deployments = caches[indexes.DEPLOYMENT_CACHE]
        self._workloads = {True: self._deployments.store, False: informers.statefulsets.store}
        self._gang_objects, self._has_gang_objects = GangObjects(caches, gang), bool(gang.resources)
        self._gang = gang
        self._clock = clock
        self._groups = GroupCache(informers, clock)
        self._endings = TerminatingGroups(informers.pods, informers.statefulsets)
        moving = capabilities.get(names.MOVES)
        self._maintenance = None if moving is None else MaintenanceNodes(caches, moving)
        self._lock = asyncio.Lock()
        self._memories: dict[ObjectKey, Memory] = {}

    async def plan(self, key: ObjectKey) -> Plan:
        """Reconcile a LeaderWorkerSet, and read missing objects.

        Large LeaderWorkerSets are processed in a thread, in turn.
        """
        observed = self.observe(key)
        if not is_large(
            (observed.leaderworkerset, observed.leader_workload, *observed.revisions), len(observed.groups)
        ):
            return await self._plan(key, observed)
        async with self._lock:
            return await self._plan(key, self.observe(key), in_thread=True)

    async def _plan(self, key: ObjectKey, observed: ObservedLeaderWorkerSet, *, in_thread: bool = False) -> Plan:
        observed, now = await self._with_owners(key, observed), self._clock.now()
        prepare = partial(build_outline, observed, now, self._gang, EXTENSIONS)
        outlined = await asyncio.to_thread(prepare) if in_thread else prepare()
        if isinstance(outlined, Plan):
            return outlined
        known = await leaderreads.read(self._client, outlined) if outlined.reads else observed.known
        if isinstance(known, Plan):
            return known
        complete = partial(reconcile, outlined, known, now, EXTENSIONS)
        return self._remember(key, await asyncio.to_thread(complete) if in_thread else complete())

    def _remember(self, key: ObjectKey, decision: Decision) -> Plan:
        """Store the results for the next reconciliation, and return the plan, whose status can be delayed."""
        if decision.source is None:
            return decision.plan
        memory = self._memories.setdefault(key, Memory())
        memory.source, memory.surplus = decision.source, decision.surplus
        memory.known = PreviousResults(
            revision_generation=decision.revision_generation, applied=decision.applied or memory.known.applied
        )
        if not decision.plan.actions:
            return decision.plan
        stored = meta.status(self._sets.get(key) or {})
        return memory.delay_status(decision.plan, stored, self._clock.monotonic(), self._groups.last_loss(key))

    def report_failure(self, key: ObjectKey) -> Actions:
        """Report a failed reconciliation in the status of the object."""
        return reconcilefailure.unavailable_status(LEADERWORKERSETS, self._sets.get(key), self._clock.now())

    def record_writes(self, key: ObjectKey, writes: Sequence[Write]) -> None:
        """Record the time of the status write, the source of the leader workload, and the API server's response."""
        memory = self._memories.get(key)
        for write in writes:
            if memory and isinstance(write, ObjectWrite) and write.resource == LEADERWORKERSETS:
                memory.written_at = self._clock.monotonic()
            if (
                memory
                and memory.source
                and isinstance(write, ObjectWrite)
                and write.resource in LEADER_WORKLOADS
                and write.object
            ):
                memory.known = replace(
                    memory.known, applied=LastApply(memory.source, Identity.from_object(write.object))
                )

    async def _with_owners(self, key: ObjectKey, observed: ObservedLeaderWorkerSet) -> ObservedLeaderWorkerSet:
        """Add uncached objects with other owners, which are an owner's Workload and the Services of groups."""
        lws = observed.leaderworkerset
        if lws is None:
            return observed
        spec = lws.get("spec") or {}
        if spec.get("scheduling") is not None and delegation.is_parent_required(lws, observed.scheduling.objects):
            parent = await gangobjects.find_parent(self._client, lws)
            observed = replace(observed, scheduling=replace(observed.scheduling, parent=parent))
        if (spec.get("networkConfig") or {}).get("subdomainPolicy") not in WITH_OWN_SERVICES:
            return observed
        pods = self._pods.by_index(indexes.LEADERS, str(key))
        return without_unreachable(
            observed, await groupservices.unreachable_leaders(self._client, lws, pods, self._services)
        )

    def observe(self, key: ObjectKey) -> ObservedLeaderWorkerSet:
        """Collect the cached objects of one LeaderWorkerSet."""
        lws = self._sets.get(key)
        if lws is None:
            self._groups.forget(key)
            self._memories.pop(key, None)
            return ObservedLeaderWorkerSet(leaderworkerset=None, evidence=self._retained_pods(key))
        tracked, memory = self._groups.groups(key), self._memories.get(key, Memory())
        groups, spec = tracked.by_leader.copy(), lws.get("spec") or {}
        is_hash = spec.get("groupIdentity") in WITH_RANDOM_KEYS
        unused = self._unused_pod_groups(key) if spec.get("scheduling") is not None else ()
        return ObservedLeaderWorkerSet(
            leaderworkerset=lws,
            leader_workload=self._workloads[is_hash].get(key),
            revisions=self._revisions.by_index(indexes.BY_LWS, str(key)),
            records=self._revisions.by_index(indexes.RECORDS, str(key)),
            service=services.observe(self._services.get(key), lws),
            groups=groups,
            group_summary=None if is_hash else tracked.summary,
            gated=self._observe_gated(key, groups, memory.surplus) if is_hash else GatedLeaders(),
            scheduling=self._gang_objects.shared_objects(key, unused) if self._has_gang_objects else NOT_SCHEDULED,
            evidence=self._retained_pods(key),
            known=memory.known,
            facts={} if self._maintenance is None else {names.MOVES: self._maintenance.observe(lws)},
        )

    def _keys_of_failure(self, change: Change) -> Iterable[ObjectKey]:
        """Map a pod that affected the failure state of its group to its LeaderWorkerSet."""
        return (groupname.lws_key(change.object),) if change is self._groups.altered_by else ()

    def _unused_pod_groups(self, key: ObjectKey) -> Sequence[JSONObject]:
        """Return the PodGroups of groups without pods. Workers can be created before these PodGroups (N-K8S-13)."""
        return [
            pod_group
            for pod_group in self._gang_objects.pod_groups(key)
            if not any(
                self._pods.by_index(indexes.POD_GROUP, str(ObjectKey(key.namespace, name)))
                for name in workloadnames.dependent_pod_groups(pod_group)
            )
        ]

    def _retained_pods(self, key: ObjectKey) -> Sequence[JSONObject]:
        """Return the pods with the finalizer for exhausted groups."""
        return self._pods.by_index(indexes.KEPT, str(key))

    def _observe_gated(
        self, key: ObjectKey, groups: Mapping[str, GroupFacts], surplus: Mapping[str, bool]
    ) -> GatedLeaders:
        staying = {name for name, group in groups.items() if not group.is_deleting}
        pods = (self._pods.get(ObjectKey(key.namespace, name)) for name in staying if groups[name].has_replacement_gate)
        gated = [pod for pod in pods if pod is not None]
        return GatedLeaders(leaders=gated, ending=self._endings.end_times(key, staying), surplus=surplus)

    def watches(self) -> Sequence[Watch]:
        """Return the watches, and the LeaderWorkerSets that are enqueued after changes."""
        return (
            Watch(self._informers.leaderworkersets, lambda change: (meta.key(change.object),)),
            Watch(self._informers.statefulsets, keys_of_statefulset),
            Watch(self._deployments, keys_of_named),
            Watch(self._informers.services, keys_of_named),
            Watch(self._informers.revisions, keys_of_revision),
            Watch(self._informers.pods, keys_of_pod),
            Watch(self._informers.pods, self._keys_of_failure),
            *self._gang_objects.watches(keys_of_owned),
            *(() if self._maintenance is None else self._maintenance.watches()),
        )


def without_unreachable(observed: ObservedLeaderWorkerSet, leaders: frozenset[str]) -> ObservedLeaderWorkerSet:
    """Return the observed state, in which the groups of these leaders are marked as not ready."""
    if not leaders:
        return observed
    groups = groupstate.without_readiness(observed.groups, leaders)
    return replace(observed, groups=groups, group_summary=None, unreachable=leaders & groups.keys())


keys_of_owned: Final = partial(indexes.keys_of_owned, LEADERWORKERSETS)
keys_of_named: Final = partial(indexes.keys_of_named, LEADERWORKERSETS)
"""Map an object to the LeaderWorkerSet that controls it, and a deleted object also to the set with its name."""


def keys_of_statefulset(change: Change) -> Iterable[ObjectKey]:
    """Map a StatefulSet to the LeaderWorkerSet with the same name, and to its controlling LeaderWorkerSet.

    A worker StatefulSet is not mapped if its counts change, but not its readiness.
    """
    if is_worker_set(change.object) and _workers(change.old) == _workers(change.new):
        return ()
    key = groupname.lws_key(change.object)
    return {*([key] if key.name else []), *keys_of_named(change)}


def is_worker_set(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet contains the workers of a group."""
    return labels.GROUP_INDEX in meta.labels(statefulset) and keys_of_owned(Change(None, statefulset)) == ()


def keys_of_revision(change: Change) -> Iterable[ObjectKey]:
    """Map an added or deleted revision, and a record with a new leader, to its LeaderWorkerSet.

    This controller adds revisions itself. A new revision may be observed after the update was reverted, and would
    remain without a reconcile. If a record names a leader, its group counts as not ready.
    """
    if labels.TEMPLATE_REVISION_HASH in meta.labels(change.object):
        return keys_of_owned(change) if change.old is None or change.new is None else ()
    return keys_of_owned(change) if indexes.is_leader_changed(change) else ()


def keys_of_pod(change: Change) -> Iterable[ObjectKey]:
    """Map a changed leader pod to its LeaderWorkerSet.

    Also map kept pods, and a deleted pod that a new leader may wait for.
    """
    # the PodGroup that a pod references is deleted after the pod (N-K8S-13)
    is_awaited = change.new is None and (
        groupname.has_random_key(change.object) or workloadnames.linked_pod_group(change.object)
    )
    has_news = is_leader(change.object) and _facts(change.old) != _facts(change.new)
    is_evidence = any(retention.is_retained(pod) for pod in (change.old, change.new) if pod is not None)
    return (groupname.lws_key(change.object),) if is_awaited or has_news or is_evidence else ()


def _workers(statefulset: JSONObject | None) -> Workers | None:
    return None if statefulset is None else describe_workers(statefulset)


def _facts(leader: JSONObject | None) -> GroupFacts | None:
    return None if leader is None else describe_group(leader, None)


def specify(gang: Gang, capabilities: Mapping[str, Any]) -> ControllerSpec:
    """Return a controller with these gang schedulers and capability settings."""

    def build(caches: Caches, client: Client, clock: Clock) -> LeaderWorkerSetDriver:
        return LeaderWorkerSetDriver(caches, client, clock, gang, capabilities)

    further = (*gang_caches(gang), *(() if capabilities.get(names.MOVES) is None else maintenancenodes.CACHES))
    caches = (*indexes.CACHES, indexes.DEPLOYMENT_CACHE, *further)
    writes = (*permissions.LEADERWORKERSET, *gang_permissions(gang))
    return ControllerSpec(name=NAME, caches=caches, build=build, writes=writes, min_interval=RECONCILE_INTERVAL)
