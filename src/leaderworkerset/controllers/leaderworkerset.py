"""The LeaderWorkerSet controller: what to watch, how to observe, call the core (R-ARC-7).

Besides what the Go controller watches, leader pods and revisions are: two watches have no common order, so that a count
made when the StatefulSet changed can be of pods as they were before. A change that leaves a group's facts as they were
asks for nothing.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.cache.informer import Change
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from kuberuntime.plan import Plan
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers import leaders, permissions, selection
from leaderworkerset.controllers.caches import Caches
from leaderworkerset.controllers.gangobjects import GangObjects, gang_caches, gang_permissions
from leaderworkerset.controllers.groupfacts import GroupFacts
from leaderworkerset.controllers.spec import ControllerSpec
from leaderworkerset.controllers.weight import is_large
from leaderworkerset.core.leaderworkerset import history, statefulsets
from leaderworkerset.core.leaderworkerset.exhausted import is_exhausted
from leaderworkerset.core.leaderworkerset.groups import Group, Workers, describe, describe_workers
from leaderworkerset.core.leaderworkerset.reconcile import Decision, Observed, decide
from leaderworkerset.core.leaderworkerset.settled import Settled
from leaderworkerset.core.pod.reconcile import is_leader
from leaderworkerset.core.policies.gang import NO_GANG, Gang

NAME: Final = "leaderworkerset"

BEHIND: Final = 1.0
"""Seconds after which is decided again where the caches had not seen yet what the API server knew."""


class Driver:
    """Observes LeaderWorkerSets in the caches; what one plan of a rollout asks for besides is read when needed.

    That is the history of revisions, and whether the leaders are as the caches know them.
    """

    def __init__(self, caches: Caches, client: Client, clock: Clock, gang: Gang) -> None:
        self._client = client
        self._informers = informers = selection.informers_of(caches)
        self._gang_objects = GangObjects(caches, gang)
        self._gang = gang
        self._clock = clock
        self._groups = GroupFacts(informers.pods, informers.statefulsets)
        self._turn = asyncio.Lock()
        self._settled: dict[ObjectKey, Settled] = {}

    async def plan(self, key: ObjectKey) -> Plan:
        """Decide what to do about one LeaderWorkerSet."""
        plan = await self._decide(key)
        if await self._is_behind(key, plan):
            return Plan(requeue_after=BEHIND)
        if not history.is_growing(plan):
            return plan
        listing = await self._client.list(
            CONTROLLER_REVISIONS, namespace=key.namespace, label_selector=history.selector(key.name)
        )
        return await self._decide(key, listing.items)

    async def _is_behind(self, key: ObjectKey, plan: Plan) -> bool:
        """Return whether a plan begins an update, and the leaders are not as it took them to be."""
        if not statefulsets.begins_to_roll(self._informers.statefulsets.store.get(key), plan):
            return False
        return not await leaders.are_as_known(self._client, key, self._groups.of(key))

    async def _decide(self, key: ObjectKey, past: Sequence[JSONObject] = ()) -> Plan:
        """Decide with this history, and remember what need not be compared again."""
        decision = await self._compare(key, past)
        if decision.settled is None:
            self._settled.pop(key, None)
        else:
            self._settled[key] = decision.settled
        return decision.plan

    async def _compare(self, key: ObjectKey, past: Sequence[JSONObject]) -> Decision:
        """Decide about a large LeaderWorkerSet in a thread, after the large ones before it."""
        observed = self.observe(key, past)
        documents = (observed.leaderworkerset, observed.leader_statefulset, *observed.revisions)
        if not is_large(documents, len(observed.groups)):
            return decide(observed, self._clock.now(), self._gang)
        async with self._turn:
            return await asyncio.to_thread(decide, self.observe(key, past), self._clock.now(), self._gang)

    def observe(self, key: ObjectKey, past: Sequence[JSONObject] = ()) -> Observed:
        """Collect what the caches know of one LeaderWorkerSet."""
        groups = self._groups.of(key)
        return Observed(
            leaderworkerset=self._informers.leaderworkersets.store.get(key),
            leader_statefulset=self._informers.statefulsets.store.get(key),
            revisions=self._informers.revisions.store.by_index(selection.BY_LWS, str(key)),
            has_shared_service=self._informers.services.store.get(key) is not None,
            groups=groups.values(),
            folded=self._groups.folded(key),
            leaders=groups,
            gang_objects=self._gang_objects.shared_by(key),
            history=past,
            records=self._informers.revisions.store.by_index(selection.RECORDS, str(key)),
            settled=self._settled.get(key),
        )

    def watches(self) -> Sequence[Watch]:
        """Return what is watched, and which LeaderWorkerSet a change concerns."""
        return (
            Watch(self._informers.leaderworkersets, lambda change: (meta.key(change.object),)),
            Watch(self._informers.statefulsets, keys_of_statefulset),
            Watch(self._informers.services, keys_of_owned),
            Watch(self._informers.revisions, keys_of_revision),
            Watch(self._informers.pods, keys_of_pod),
            *self._gang_objects.watches(selection.keys_of_nothing),
        )


def keys_of_statefulset(change: Change) -> Iterable[ObjectKey]:
    """Map a StatefulSet to the LeaderWorkerSet whose name it carries, and to the one that controls it.

    A worker StatefulSet that counts its pods, but is as ready as before, concerns nobody.
    """
    if is_worker_set(change.object) and _workers(change.old) == _workers(change.new):
        return ()
    named = selection.lws_key(change.object)
    return {*([named] if named.name else []), *keys_of_owned(change)}


def is_worker_set(statefulset: JSONObject) -> bool:
    """Return whether the StatefulSet holds the workers of a group."""
    return labels.GROUP_INDEX in meta.labels(statefulset) and keys_of_owned(Change(None, statefulset)) == ()


def keys_of_owned(change: Change) -> Iterable[ObjectKey]:
    """Map an object to the LeaderWorkerSet that controls it."""
    owner = meta.controller_of(change.object)
    if owner is None or owner["kind"] != LEADERWORKERSETS.kind:
        return ()
    return (ObjectKey(meta.namespace(change.object), owner["name"]),)


def keys_of_revision(change: Change) -> Iterable[ObjectKey]:
    """Map a revision that appeared or vanished to its LeaderWorkerSet.

    One that appears is this controller's own doing, but it may be seen so late that nobody wants it any more: the update
    was taken back, and what is left of it would stay. Records of recreations concern it where a group is given up, or is not any more.
    """
    if _is_exhausted(change.old) != _is_exhausted(change.new):
        return keys_of_owned(change)
    is_revision = labels.TEMPLATE_REVISION_HASH in meta.labels(change.object)
    return keys_of_owned(change) if is_revision and (change.old is None or change.new is None) else ()


def keys_of_pod(change: Change) -> Iterable[ObjectKey]:
    """Map a leader pod to its LeaderWorkerSet where what counts of it changed."""
    if not is_leader(change.object) or _facts(change.old) == _facts(change.new):
        return ()
    return (selection.lws_key(change.object),)


def _is_exhausted(record: JSONObject | None) -> bool:
    return record is not None and is_exhausted(record)


def _workers(statefulset: JSONObject | None) -> Workers | None:
    return None if statefulset is None else describe_workers(statefulset)


def _facts(leader: JSONObject | None) -> Group | None:
    return None if leader is None else describe(leader, None)


def specify(gang: Gang = NO_GANG) -> ControllerSpec:
    """Return the controller, with the gang schedulers that may be used."""

    def build(caches: Caches, client: Client, clock: Clock) -> Driver:
        return Driver(caches, client, clock, gang)

    caches = (*selection.CACHES, *gang_caches(gang))
    return ControllerSpec(
        name=NAME, caches=caches, build=build, writes=(*permissions.LEADERWORKERSET, *gang_permissions(gang))
    )
