"""The facts of all groups, updated with each change, so that a reconcile of a LeaderWorkerSet reads no pods.

In: changes of leader pods and of StatefulSets. Out: the groups of one LeaderWorkerSet as values, and their fold. A
change only costs the work for its own group, however many groups there are. The groups of a LeaderWorkerSet are
followed from its first request on, so that pods that merely carry the labels cost nothing here.
"""

from collections.abc import Mapping

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api.groupname import is_leader
from leaderworkerset.capabilities.deciding import describe
from leaderworkerset.controllers import indexes
from leaderworkerset.core.leaderworkerset.fold import Folded, Groups
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts


class GroupsOfSets:
    """The groups of every LeaderWorkerSet; subscribes to two informers before they have objects."""

    def __init__(self, pods: Informer, statefulsets: Informer) -> None:
        self._pods = pods.store
        self._statefulsets = statefulsets.store
        self._sets: dict[ObjectKey, Groups] = {}
        pods.subscribe(self._pod_changed)
        statefulsets.subscribe(self._statefulset_changed)

    def of(self, lws: ObjectKey) -> Mapping[str, GroupFacts]:
        """Return the current groups of the LeaderWorkerSet with this key, by the names of their leaders."""
        return self._known(lws).by_leader.copy()

    def folded(self, lws: ObjectKey) -> Folded:
        """Return the fold of these groups."""
        return self._known(lws).folded()

    def forget(self, lws: ObjectKey) -> None:
        """Stop following the groups of a deleted LeaderWorkerSet."""
        self._sets.pop(lws, None)

    def _known(self, lws: ObjectKey) -> Groups:
        if lws not in self._sets:
            self._sets[lws] = groups = Groups(lws.name)
            for leader in self._pods.by_index(indexes.LEADERS, str(lws)):
                groups.put(meta.name(leader), self._describe(leader))
        return self._sets[lws]

    def _pod_changed(self, change: Change) -> None:
        if change.old is not None and is_leader(change.old) and _moved(change.old, change.new):
            self._put(change.old, None)
        if change.new is not None and is_leader(change.new):
            self._put(change.new, self._describe(change.new))

    def _statefulset_changed(self, change: Change) -> None:
        key, owner = meta.key(change.object), meta.controller_of(change.object)
        for name in {key.name, owner["name"] if owner else key.name}:
            leader = self._pods.get(ObjectKey(key.namespace, name))
            if leader is not None and is_leader(leader):
                self._put(leader, self._describe(leader))

    def _describe(self, leader: JSONObject) -> GroupFacts:
        return describe(leader, indexes.find_workers(leader, self._statefulsets))

    def _put(self, leader: JSONObject, group: GroupFacts | None) -> None:
        """Record the new facts of this leader's group, None if the leader was deleted."""
        if (groups := self._sets.get(indexes.lws_key(leader))) is not None:
            groups.put(meta.name(leader), group)


def _moved(old: JSONObject, new: JSONObject | None) -> bool:
    """Return whether the leader was deleted, or no longer belongs to this LeaderWorkerSet."""
    return new is None or not is_leader(new) or indexes.lws_key(new) != indexes.lws_key(old)
