"""The facts of all groups, updated with each change, so that a reconcile of a LeaderWorkerSet reads no pods.

In: changes of leader pods and of StatefulSets. Out: the groups of one LeaderWorkerSet as values, and their fold. A
change costs only the work for its own group, however many there are.
"""

from collections.abc import Mapping

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.controllers import indexes
from leaderworkerset.core.leaderworkerset.fold import Folded
from leaderworkerset.core.leaderworkerset.groupfacts import GroupFacts, describe
from leaderworkerset.core.pod.reconcile import is_leader


class _Groups:
    """The groups of one LeaderWorkerSet by their leader, and their fold."""

    def __init__(self) -> None:
        self.by_leader: dict[str, GroupFacts] = {}
        self.folded = Folded()


class GroupsOfSets:
    """The groups of every LeaderWorkerSet; subscribes to two informers from their first object on."""

    def __init__(self, pods: Informer, statefulsets: Informer) -> None:
        self._pods = pods.store
        self._statefulsets = statefulsets.store
        self._sets: dict[ObjectKey, _Groups] = {}
        pods.subscribe(self._pod_changed)
        statefulsets.subscribe(self._statefulset_changed)

    def of(self, lws: ObjectKey) -> Mapping[str, GroupFacts]:
        """Return the current groups of the LeaderWorkerSet with this key, by the names of their leaders."""
        return self._sets[lws].by_leader.copy() if lws in self._sets else {}

    def folded(self, lws: ObjectKey) -> Folded:
        """Return the fold of these groups."""
        return self._sets[lws].folded if lws in self._sets else Folded()

    def _pod_changed(self, change: Change) -> None:
        if change.old is not None and is_leader(change.old) and _moved(change.old, change.new):
            self._put(change.old, None)
        if change.new is not None and is_leader(change.new):
            self._put(change.new, self._describe(change.new))

    def _statefulset_changed(self, change: Change) -> None:
        leader = self._pods.get(meta.key(change.object))
        if leader is not None and is_leader(leader):
            self._put(leader, self._describe(leader))

    def _describe(self, leader: JSONObject) -> GroupFacts:
        return describe(leader, self._statefulsets.get(meta.key(leader)))

    def _put(self, leader: JSONObject, group: GroupFacts | None) -> None:
        """Record the new facts of this leader's group, None if the leader was deleted."""
        lws, name = indexes.lws_key(leader), meta.name(leader)
        known = self._sets.setdefault(lws, _Groups())
        old = known.by_leader.pop(name, None) if group is None else known.by_leader.get(name)
        if group is not None:
            known.by_leader[name] = group
        if group != old:
            known.folded = known.folded.changed(old, group, lws.name)
        if not known.by_leader:
            del self._sets[lws]


def _moved(old: JSONObject, new: JSONObject | None) -> bool:
    """Return whether the leader was deleted, or is now of another LeaderWorkerSet, or of none."""
    return new is None or not is_leader(new) or indexes.lws_key(new) != indexes.lws_key(old)
