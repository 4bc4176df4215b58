"""Implements the pod controller, which observes groups and calls the core (R-ARC-8).

Its keys are leader pods. A change of a pod or StatefulSet enqueues the group if a decision can depend on it. The
last state of deleted pods is kept until the group is observed, because a pod that is deleted without a grace period can
no longer be read (R-POD-11). When a group is first observed, workers that were deleted while no manager was running are added.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS, STATEFULSETS
from kuberuntime.plan import Apply, Create, Delete, Plan
from leaderworkerset.api import groupname, labels, recreationrecord
from leaderworkerset.capabilities.deciding import reconcile_group, required_nodes
from leaderworkerset.capabilities.enabled import WAKING_FIELDS, WAKING_GROUPS
from leaderworkerset.capabilities.groupprogress import ignores_progress
from leaderworkerset.controllers import gangobjects, indexes, leaderreads, permissions, startprogress
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.decisioncost import is_large
from leaderworkerset.controllers.gangobjects import GangObjects, gang_caches, gang_permissions
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.core import reconcilefailure
from leaderworkerset.core.leaderworkerset import services
from leaderworkerset.core.policies import delegation
from leaderworkerset.core.policies.gang import NO_GANG, Gang
from leaderworkerset.core.policies.policy import GroupObjects, LiveGroup
from leaderworkerset.core.restarts import missingworkers

NAME: Final = "pod"

NONE: Final[Mapping[str, Any]] = {}
"""The settings without configured capabilities."""


class PodDriver(Driver):
    """Observes groups in the caches. Nodes are read on demand, because only few groups require them."""

    def __init__(
        self, caches: Caches, client: Client, clock: Clock, gang: Gang, capabilities: Mapping[str, Any] = NONE
    ) -> None:
        self._informers = informers = indexes.informers_of(caches)
        self._gang_objects = GangObjects(caches, gang)
        self._gang = gang
        self._capabilities = capabilities
        self._client = client
        self._clock = clock
        self._gone: dict[ObjectKey, dict[str, JSONObject]] = {}
        self._unobserved: set[ObjectKey] = set()
        self._bereft: dict[ObjectKey, UID] = {}
        """The leaders whose worker StatefulSet was deleted before the leader."""
        self._last_statuses: dict[ObjectKey, missingworkers.LastStatus] = {}
        self._moments: dict[ObjectKey, Sequence[missingworkers.CompletionTime]] = {}
        self._lock = asyncio.Lock()
        informers.leaderworkersets.subscribe(self._note_status)
        informers.pods.subscribe(self._record_deletion)
        informers.statefulsets.subscribe(self._note_leader_without_workers)

    async def plan(self, key: ObjectKey) -> Plan:
        """Reconcile the group of the leader pod `key`.

        Before lost workers are recreated, check that the leader exists.
        """
        plan = await self._decide(key)
        if key in self._bereft and any(
            isinstance(action, Create) and action.resource == STATEFULSETS for action in plan.actions
        ):
            if not await leaderreads.is_leader_alive(self._client, key, self._bereft[key]):
                return Plan()  # the cache will soon contain the change
            self._bereft.pop(key, None)
        return plan

    async def _decide(self, key: ObjectKey) -> Plan:
        if key in self._unobserved:
            self._add_unobserved_workers(key)
        group = await self.observe(key)
        if group is not None and is_large(
            (group.obj, *group.revisions), len(group.objects.pods) + len(group.objects.deleted)
        ):
            async with self._lock:
                group = await self.observe(key)
                if group is not None:
                    return self._finish_plan(key, group, await asyncio.to_thread(reconcile_group, group, self._gang))
        if group is None:  # workers that terminated after their leader no longer belong to a group
            self._gone.pop(key, None)
            return Plan()
        return self._finish_plan(key, group, reconcile_group(group, self._gang))

    def _finish_plan(self, key: ObjectKey, group: LiveGroup, plan: Plan) -> Plan:
        """Return the plan, and discard the deleted pods if the plan does not depend on them.

        If the plan is an error, they are remembered until the LeaderWorkerSet is readable again.
        """
        if plan.error is None and not any(isinstance(action, Delete | Apply) for action in plan.actions):
            self._forget(key, group.objects.deleted)
        return plan

    async def observe(self, key: ObjectKey) -> LiveGroup | None:
        """Collect the objects of a group. Return None if its leader does not exist or has a different owner."""
        leader = self._informers.pods.store.get(key)
        if leader is None or groupname.has_foreign_controller(leader):
            return None
        group = self._observe_cached(key, leader)
        if names := required_nodes(group):
            nodes = {name: await self._client.find(NODES, ObjectKey("", name)) for name in sorted(names)}
            group = replace(group, nodes=nodes)
        if delegation.is_parent_required_by(group):
            parent = await gangobjects.find_parent(self._client, group.obj)
            group = replace(group, scheduling=replace(group.scheduling, parent=parent))
        return group

    def watches(self) -> Sequence[Watch]:
        """Return the watches, and the leader pods that are enqueued after changes."""
        return (
            Watch(self._informers.pods, self._keys_of_pod),
            Watch(self._informers.statefulsets, self._keys_of_statefulset),
            Watch(self._informers.leaderworkersets, self._keys_of_leaderworkerset),
            Watch(self._informers.services, keys_of_lost_service),
            Watch(self._informers.revisions, indexes.no_keys),
            *self._gang_objects.watches(self._keys_of_gang_object),
        )

    def _keys_of_pod(self, change: Change) -> Iterable[ObjectKey]:
        """Map a pod to its leader, unless no decision about the group can depend on the change."""
        (key,) = keys_of_pod(change)
        leader = self._informers.pods.store.get(key)
        if leader is None:
            return ()
        if meta.is_deleting(leader):
            return () if self._ignores_progress(leader) else (key,)
        is_new_leader = change.old is None and key == meta.key(change.object)
        is_start = not is_new_leader and startprogress.is_pod_start(change.old, change.new)
        return () if is_start and self._ignores_progress(leader) else (key,)

    def _keys_of_statefulset(self, change: Change) -> Iterable[ObjectKey]:
        """Map a worker StatefulSet to its leader, unless no decision about the group can depend on the change."""
        for key in keys_of_named(change):
            leader = self._informers.pods.store.get(key)
            if leader is None:
                continue
            is_progress = meta.is_deleting(leader) or startprogress.is_status_change(change.old, change.new)
            if not is_progress or not self._ignores_progress(leader):
                yield key

    def _ignores_progress(self, leader: JSONObject) -> bool:
        """Return whether the progress of a start or termination is irrelevant for this group."""
        if self._gang is not NO_GANG:
            return False
        lws = groupname.lws_key(leader)
        group = indexes.group_value(lws, groupname.group_label(leader))
        statefulsets = self._informers.statefulsets.store.by_index(indexes.BY_GROUP, group)
        if not meta.is_deleting(leader) and groupname.find_workers(leader, statefulsets) is None:
            return False
        obj = self._informers.leaderworkersets.store.get(lws) or {}
        return ignores_progress(obj, leader, statefulsets, self._capabilities)

    def _observe_cached(self, key: ObjectKey, leader: JSONObject) -> LiveGroup:
        informers = self._informers
        lws = groupname.lws_key(leader)
        group_index = groupname.group_label(leader)
        group = indexes.group_value(lws, group_index)
        service = informers.services.store.get(ObjectKey(key.namespace, groupname.hostname(leader)))
        return LiveGroup(
            leader=leader,
            obj=informers.leaderworkersets.store.get(lws) or {},
            now=self._clock.now(),
            objects=GroupObjects(
                pods=informers.pods.store.by_index(indexes.BY_GROUP, group),
                deleted=tuple(self._gone.get(key, {}).values()),
                statefulsets=informers.statefulsets.store.by_index(indexes.BY_GROUP, group),
            ),
            revisions=informers.revisions.store.by_index(indexes.BY_LWS, str(lws)),
            service=services.observe(service, leader),
            record=self._find_record(leader),
            scheduling=self._gang_objects.group_objects(lws, group_index),
            facts=self._capabilities,
        )

    def _find_record(self, leader: JSONObject) -> JSONObject | None:
        """Return the last recreation record of the group, or the record of the group that it replaces."""
        names = (recreationrecord.record_name(leader), recreationrecord.replaced_record_name(leader))
        records = (self._informers.revisions.store.get(ObjectKey(meta.namespace(leader), name)) for name in names)
        return next((record for record in records if record is not None), None)

    def _record_deletion(self, change: Change) -> None:
        """Keep a record of a deleted worker until its group is observed. Discard a group with a deleted leader."""
        if change.new is not None:
            if change.old is None and groupname.is_leader(change.new):
                self._unobserved.add(meta.key(change.new))
            return
        for key in keys_of_pod(change):
            if key == meta.key(change.object):
                self._gone.pop(key, None)
                self._bereft.pop(key, None)
            elif self._informers.pods.store.get(key) is not None:
                self._gone.setdefault(key, {})[meta.name(change.object)] = change.object

    def _note_leader_without_workers(self, change: Change) -> None:
        """Record the leader of a worker StatefulSet that was deleted before the leader."""
        key, leader = meta.key(change.object), self._informers.pods.store.get(meta.key(change.object))
        if change.new is None and leader is not None and not meta.is_of_predecessor(change.object, leader):
            self._bereft[key] = meta.uid(leader)

    def _note_status(self, change: Change) -> None:
        """Record the initial status of a LeaderWorkerSet, before this manager updates it.

        If reconciles fail, the status has not been Available since then, but groups have not been recreated.
        """
        key = meta.key(change.object)
        if change.old is None or change.new is None:
            self._moments.pop(key, None)
            self._last_statuses.pop(key, None)
        if change.old is None and change.new is not None:
            self._last_statuses[key] = missingworkers.last_status(reconcilefailure.without_failure(change.new))

    def _add_unobserved_workers(self, key: ObjectKey) -> None:
        """When a group is first observed, add workers that were deleted while no manager was running."""
        self._unobserved.discard(key)
        leader = self._informers.pods.store.get(key)
        statefulset = None if leader is None else self._find_workers(leader)
        if leader is None or statefulset is None:
            return
        group = self._observe_cached(key, leader)
        if missingworkers.may_be_new(group.obj, leader):
            return
        for moment in self._completion_times(groupname.lws_key(leader)):
            for worker in missingworkers.deleted_workers(moment, statefulset, group.objects.pods):
                self._gone.setdefault(key, {}).setdefault(meta.name(worker), worker)

    def _completion_times(self, lws: ObjectKey) -> Sequence[missingworkers.CompletionTime]:
        """Return the times at which the groups that existed before this manager were complete."""
        if lws not in self._moments and lws in self._last_statuses:
            leaders = self._informers.pods.store.by_index(indexes.LEADERS, str(lws))
            ending = {meta.uid(leader): leader for leader in leaders if self._is_condemned(leader)}
            groups = [self._observed_group(leader) for leader in leaders if meta.uid(leader) not in ending]
            self._moments[lws] = missingworkers.completion_times(self._last_statuses.pop(lws), groups, ending.values())
        return self._moments.get(lws, ())

    def _observed_group(self, leader: JSONObject) -> missingworkers.ObservedGroup:
        group = indexes.group_value(groupname.lws_key(leader), groupname.group_label(leader))
        pods = self._informers.pods.store.by_index(indexes.BY_GROUP, group)
        return missingworkers.ObservedGroup(leader, self._find_workers(leader), tuple(pods))

    def _find_workers(self, leader: JSONObject) -> JSONObject | None:
        return indexes.find_workers(leader, self._informers.statefulsets.store)

    def _is_condemned(self, leader: JSONObject) -> bool:
        return meta.is_deleting(leader) or recreationrecord.requires_recreation(self._find_record(leader), leader)

    def _forget(self, key: ObjectKey, gone: Sequence[JSONObject]) -> None:
        """Discard observed pods if they do not require a write."""
        known = self._gone.get(key, {})
        for pod in gone:
            if known.get(meta.name(pod)) is pod:
                del known[meta.name(pod)]
        if not known:
            self._gone.pop(key, None)

    def _keys_of_leaderworkerset(self, change: Change) -> Iterable[ObjectKey]:
        """Map an added LeaderWorkerSet to its leader pods, which might have been observed before.

        A change to its restart settings can also resume a group, or recreate an exhausted group. A change to the
        termination settings affects the workers of terminating leaders. A change to startupPolicy affects the workers
        of leaders that are not ready.
        """
        if change.new is None or (change.old is not None and _settings(change.old) == _settings(change.new)):
            return ()
        leaders = self._informers.pods.store.by_index(indexes.LEADERS, str(meta.key(change.new)))
        return [meta.key(leader) for leader in leaders]

    def _keys_of_gang_object(self, change: Change) -> Iterable[ObjectKey]:
        """Map a gang scheduler object to its leader pod.

        Objects for `spec.scheduling` are mapped by their group.
        """
        if labels.SCHEDULING_LEVEL not in meta.labels(change.object):
            return keys_of_controlled(change)
        groups = indexes.group_values(change.object)
        pods = (pod for group in groups for pod in self._informers.pods.store.by_index(indexes.BY_GROUP, group))
        return [meta.key(pod) for pod in pods if groupname.is_leader(pod)]


def _settings(lws: JSONObject) -> list[str | None]:
    annotations, spec = meta.annotations(lws), meta.spec(lws)
    return [*map(annotations.get, WAKING_GROUPS), *map(spec.get, ("startupPolicy", *WAKING_FIELDS))]


def keys_of_pod(change: Change) -> Iterable[ObjectKey]:
    """Map a pod to its leader. If there is no leader, the key is the pod itself, so that the pod is reported."""
    return (ObjectKey(meta.namespace(change.object), groupname.leader_name(change.object)),)


keys_of_controlled: Final = partial(indexes.keys_of_owned, PODS)
keys_of_named: Final = partial(indexes.keys_of_named, PODS)
"""Map an object to the leader pod that controls it, and a deleted object also to the leader with its name."""


def keys_of_lost_service(change: Change) -> Iterable[ObjectKey]:
    """Map a deleted Service to the leader pod with the same name.

    While it existed, it counted as the Service of the group, because Services are found by name (R-SVC-4).
    """
    return keys_of_named(change) if change.new is None else ()


def specify(gang: Gang = NO_GANG, capabilities: Mapping[str, Any] = NONE) -> ControllerSpec:
    """Return a controller with these gang schedulers and capability settings."""

    def build(caches: Caches, client: Client, clock: Clock) -> PodDriver:
        return PodDriver(caches, client, clock, gang, capabilities)

    caches = (*indexes.CACHES, *gang_caches(gang))
    return ControllerSpec(name=NAME, caches=caches, build=build, writes=(*permissions.POD, *gang_permissions(gang)))
