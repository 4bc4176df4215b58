"""Tracks nodes that are closed for maintenance and the groups that must be moved, if maintenance is enabled.

Groups whose leader is marked are moved, even if their nodes are not closed. The separate declaration of the pods,
which the controllers already read, adds an index and the tolerations.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kuberuntime.cache.informer import Change
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api import groupname, labels
from leaderworkerset.capabilities.moves.closednodes import closing_taints, must_be_moved
from leaderworkerset.capabilities.moves.maintenancesettings import MaintenanceSettings
from leaderworkerset.controllers import cachedfields, indexes
from leaderworkerset.controllers.caches import Cache, Caches

MARKED: Final = "marked to move"


def marked_values(pod: JSONObject) -> Iterable[str]:
    """Index the leader of a group that must be moved by its LeaderWorkerSet, until the move starts."""
    is_marked = labels.MOVE_GROUP in meta.annotations(pod) and not meta.is_deleting(pod)
    return indexes.leader_values(pod) if is_marked else ()


POD_CACHE: Final = Cache(
    indexes.POD_CACHE.selection,
    {indexes.BY_NODE: indexes.node_values, MARKED: marked_values},
    keep=cachedfields.same_fields(cachedfields.MOVABLE_POD),
)

CACHES: Final = (indexes.CLOSABLE_NODE_CACHE, POD_CACHE)


class MaintenanceNodes:
    """The taints that close nodes, by node name. They are updated from the node cache."""

    def __init__(self, caches: Caches, settings: MaintenanceSettings) -> None:
        self._nodes, self._pods = caches[indexes.CLOSABLE_NODE_CACHE], caches[POD_CACHE]
        self._statefulsets = caches[indexes.STATEFULSET_CACHE].store
        self._settings = settings
        self._closed: dict[str, tuple[JSONObject, ...]] = {}
        self._nodes.subscribe(self._handle_node_change)

    def observe(self, lws: JSONObject) -> Mapping[str, Collection[str]]:
        """Return the leaders of groups that must be moved, and the names of the affected nodes."""
        key = meta.key(lws)
        nodes = {meta.name(leader): self._nodes_of(leader) for leader in self._pods.store.by_index(MARKED, str(key))}
        if not self._closed or not self._settings.moves_groups(meta.annotations(lws)):
            return nodes
        for node, taints in self._closed.items():
            for pod in self._pods.store.by_index(indexes.BY_NODE, node):
                if groupname.lws_key(pod) == key and must_be_moved(pod, taints) and self._belongs_to_current_group(pod):
                    nodes.setdefault(groupname.leader_name(pod), set()).add(node)
        return nodes

    def _belongs_to_current_group(self, pod: JSONObject) -> bool:
        """Return whether a pod belongs to the current group. Workers of a replaced leader will be deleted."""
        if groupname.is_leader(pod):
            return True
        leader = self._pods.store.get(ObjectKey(meta.namespace(pod), groupname.leader_name(pod)))
        workers = None if leader is None else indexes.find_workers(leader, self._statefulsets)
        if leader is None or workers is None or meta.is_of_predecessor(workers, leader):
            return False
        return meta.is_controlled(pod, workers)

    def _nodes_of(self, leader: JSONObject) -> set[str]:
        """Return the nodes of the pods in the group of a marked leader."""
        group = indexes.group_value(groupname.lws_key(leader), groupname.group_label(leader))
        placed = (indexes.node_values(pod) for pod in self._pods.store.by_index(indexes.BY_GROUP, group))
        return {node for nodes in placed for node in nodes}

    def watches(self) -> Sequence[Watch]:
        """Return the watches, and the LeaderWorkerSets that are enqueued after changes."""
        return (Watch(self._nodes, self._keys_of_node), Watch(self._pods, self._keys_of_pod))

    def _handle_node_change(self, change: Change) -> None:
        taints = () if change.new is None else closing_taints(change.new, self._settings.taint)
        if taints:
            self._closed[meta.name(change.object)] = taints
        else:
            self._closed.pop(meta.name(change.object), None)

    def _keys_of_node(self, change: Change) -> Iterable[ObjectKey]:
        """Map a closed or opened node to the LeaderWorkerSets with pods on it."""
        old, new = (
            () if node is None else closing_taints(node, self._settings.taint) for node in (change.old, change.new)
        )
        if old == new:
            return ()
        return {groupname.lws_key(pod) for pod in self._pods.store.by_index(indexes.BY_NODE, meta.name(change.object))}

    def _keys_of_pod(self, change: Change) -> Iterable[ObjectKey]:
        """Map a pod on a closed node, or a leader whose mark changed, to the LeaderWorkerSet."""
        after, before = ("" if pod is None else meta.spec(pod).get("nodeName") for pod in (change.new, change.old))
        marks, old_marks = (() if leader is None else marked_values(leader) for leader in (change.new, change.old))
        has_news = marks != old_marks or (after != before and after in self._closed)
        return (groupname.lws_key(change.object),) if has_news else ()
