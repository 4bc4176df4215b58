"""The controller of moves: watches of nodes and groups, observation, the call of the core (`core/maintenance/`).

Its keys are LeaderWorkerSets. As long as no node is closed, no change of a pod enqueues any. Only a manager whose
configuration enables maintenance runs it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.cache.informer import Change
from kuberuntime.cache.projection import either
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.plan import Plan
from leaderworkerset.api import groupname
from leaderworkerset.controllers import indexes, kept, permissions
from leaderworkerset.controllers.caches import Cache, Caches
from leaderworkerset.controllers.disruption import BY_NODE, NODE_CACHE, ClosedNodes, node_values
from leaderworkerset.controllers.spec import ControllerSpec, Driver
from leaderworkerset.core.maintenance.movesettings import MoveSettings, must_leave
from leaderworkerset.core.maintenance.reconcile import MovableGroup, ObservedMoves, reconcile

NAME: Final = "maintenance"

POD_CACHE: Final = Cache(
    indexes.POD_CACHE.what,
    {indexes.BY_GROUP: indexes.group_values, indexes.LEADERS: indexes.leader_values, BY_NODE: node_values},
    keep=either(kept.pod, kept.evictable_pod),
)


class MaintenanceDriver(Driver):
    """Observes the groups of LeaderWorkerSets with pods on closed nodes."""

    def __init__(self, caches: Caches, settings: MoveSettings) -> None:
        self._sets = caches[indexes.LEADERWORKERSET_CACHE]
        self._pods = caches[POD_CACHE]
        self._statefulsets = caches[indexes.STATEFULSET_CACHE]
        self._nodes = caches[NODE_CACHE]
        self._closed = ClosedNodes(self._nodes)
        self._settings = settings

    async def plan(self, key: ObjectKey) -> Plan:
        """Decide about one LeaderWorkerSet; one without pods on closed nodes costs only the question."""
        obj = self._sets.store.get(key)
        off = {} if obj is None else self._off(key)
        if obj is None or not off:
            return Plan()
        leaders = self._pods.store.by_index(indexes.LEADERS, str(key))
        groups = [self._group(key, leader, off.get(groupname.label(leader), set())) for leader in leaders]
        return reconcile(ObservedMoves(obj=obj, groups=groups), self._settings)

    def watches(self) -> Sequence[Watch]:
        """Return the watches, and the LeaderWorkerSets that a change enqueues."""
        return (
            Watch(self._sets, lambda change: (meta.key(change.object),)),
            Watch(self._pods, self._keys_of_member),
            Watch(self._statefulsets, self._keys_of_member),
            Watch(self._nodes, self._keys_of_node),
        )

    def _off(self, key: ObjectKey) -> dict[str, set[str]]:
        """Return the nodes that each group must leave, by its label."""
        found: dict[str, set[str]] = {}
        for name, node in self._closed.by_name.items():
            for pod in self._pods.store.by_index(BY_NODE, name):
                if indexes.lws_key(pod) == key and _stays(pod) and must_leave(self._settings, node, pod):
                    found.setdefault(groupname.label(pod), set()).add(name)
        return found

    def _group(self, key: ObjectKey, leader: JSONObject, off: set[str]) -> MovableGroup:
        """Observe a group; pods of an earlier leader of its name are on their way out, whatever they say."""
        members = self._pods.store.by_index(indexes.BY_GROUP, indexes.group_value(key, groupname.label(leader)))
        return MovableGroup(
            leader=leader,
            workers=indexes.find_workers(leader, self._statefulsets.store),
            pods=sum(map(_stays, members)),
            off=tuple(sorted(off)),
        )

    def _keys_of_member(self, change: Change) -> Iterable[ObjectKey]:
        return (indexes.lws_key(change.object),) if self._closed.by_name else ()

    def _keys_of_node(self, change: Change) -> Iterable[ObjectKey]:
        """Map a node that was closed, or is no longer, to the LeaderWorkerSets with pods on it."""
        versions = [meta.spec(node) for node in (change.old, change.new) if node is not None]
        if len(versions) == 2 and versions[0] == versions[1]:
            return ()
        return {indexes.lws_key(pod) for pod in self._pods.store.by_index(BY_NODE, meta.name(change.object))}


def _stays(pod: JSONObject) -> bool:
    return not meta.is_deleting(pod) and meta.status(pod).get("phase") not in {"Failed", "Succeeded"}


def specify(settings: MoveSettings) -> ControllerSpec:
    """Return the controller with these settings."""

    def build(caches: Caches, _client: Client, _clock: Clock) -> MaintenanceDriver:
        return MaintenanceDriver(caches, settings)

    caches = (indexes.LEADERWORKERSET_CACHE, POD_CACHE, indexes.STATEFULSET_CACHE, NODE_CACHE)
    return ControllerSpec(name=NAME, caches=caches, build=build, writes=permissions.MAINTENANCE)
