"""The LeaderWorkerSet controller: what to watch, how to observe, call the core (R-ARC-7).

Besides what the Go controller watches, leader pods and revisions are: two watches have no common order, so that a count
made when the StatefulSet changed can be of pods as they were before. A change that leaves a group's facts as they were
asks for nothing.
"""

from collections.abc import Iterable, Sequence

from leaderworkerset.api import labels, meta
from leaderworkerset.api.meta import JSONObject, ObjectKey
from leaderworkerset.api.plan import Plan
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.controllers import selection
from leaderworkerset.controllers.selection import Informers
from leaderworkerset.core.leaderworkerset import groups
from leaderworkerset.core.leaderworkerset.groups import Group
from leaderworkerset.core.leaderworkerset.reconcile import Observed, reconcile
from leaderworkerset.core.pod.reconcile import is_leader
from leaderworkerset.kube.clock import Clock
from leaderworkerset.kube.controller import Controller, Watch
from leaderworkerset.kube.executor import Executor
from leaderworkerset.kube.informer import Change

NAME = "leaderworkerset"


class Driver:
    """Observes LeaderWorkerSets in the caches. The facts of a group are kept for as long as its objects are the same."""

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._informers = informers
        self._clock = clock
        self._groups: dict[ObjectKey, tuple[JSONObject, JSONObject | None, Group]] = {}
        informers.pods.subscribe(self._forget)

    async def plan(self, key: ObjectKey) -> Plan:
        """Decide what to do about one LeaderWorkerSet."""
        return reconcile(self.observe(key), self._clock.now())

    def observe(self, key: ObjectKey) -> Observed:
        """Collect what the caches know of one LeaderWorkerSet."""
        return Observed(
            leaderworkerset=self._informers.leaderworkersets.store.get(key),
            leader_statefulset=self._informers.statefulsets.store.get(key),
            revisions=self._informers.revisions.store.by_index(selection.BY_LWS, str(key)),
            has_shared_service=self._informers.services.store.get(key) is not None,
            groups=self._observe_groups(key),
        )

    def watches(self) -> Sequence[Watch]:
        """Return what is watched, and which LeaderWorkerSet a change concerns."""
        return (
            Watch(self._informers.leaderworkersets, lambda change: (meta.key(change.object),)),
            Watch(self._informers.statefulsets, keys_of_statefulset),
            Watch(self._informers.services, keys_of_owned),
            Watch(self._informers.revisions, keys_of_revision),
            Watch(self._informers.pods, keys_of_pod),
        )

    def _observe_groups(self, key: ObjectKey) -> Sequence[Group]:
        leaders = self._informers.pods.store.by_index(selection.LEADERS, str(key))
        return [self._observe_group(leader) for leader in leaders]

    def _observe_group(self, leader: JSONObject) -> Group:
        key = meta.key(leader)
        workers = self._informers.statefulsets.store.get(key)
        known = self._groups.get(key)
        if known is not None and known[0] is leader and known[1] is workers:
            return known[2]
        group = groups.describe(leader, workers)
        self._groups[key] = (leader, workers, group)
        return group

    def _forget(self, change: Change) -> None:
        if change.new is None:
            self._groups.pop(meta.key(change.object), None)


def build_controller(informers: Informers, executor: Executor, clock: Clock) -> Controller:
    """Wire the controller."""
    driver = Driver(informers, clock)
    return Controller(NAME, watches=driver.watches(), plan=driver.plan, executor=executor, clock=clock)


def keys_of_statefulset(change: Change) -> Iterable[ObjectKey]:
    """Map a StatefulSet to the LeaderWorkerSet whose name it carries, and to the one that controls it."""
    named = selection.lws_key(change.object)
    return {*([named] if named.name else []), *keys_of_owned(change)}


def keys_of_owned(change: Change) -> Iterable[ObjectKey]:
    """Map an object to the LeaderWorkerSet that controls it."""
    owner = meta.controller_of(change.object)
    if owner is None or owner["kind"] != LEADERWORKERSETS.kind:
        return ()
    return (ObjectKey(meta.namespace(change.object), owner["name"]),)


def keys_of_revision(change: Change) -> Iterable[ObjectKey]:
    """Map a revision that vanished to its LeaderWorkerSet; one that appears is this controller's own doing."""
    is_revision = labels.TEMPLATE_REVISION_HASH in meta.labels(change.object)
    return keys_of_owned(change) if change.new is None and is_revision else ()


def keys_of_pod(change: Change) -> Iterable[ObjectKey]:
    """Map a leader pod to its LeaderWorkerSet where what counts of it changed."""
    if not is_leader(change.object) or _facts(change.old) == _facts(change.new):
        return ()
    return (selection.lws_key(change.object),)


def _facts(leader: JSONObject | None) -> Group | None:
    return None if leader is None else groups.describe(leader, None)
