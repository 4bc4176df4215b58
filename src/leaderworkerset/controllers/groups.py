"""The facts of all groups, kept up to date change by change, so that observing a LeaderWorkerSet reads no pods.

In: changes of leader pods and of StatefulSets. Out: the groups of one LeaderWorkerSet as values. A change costs the one
group it concerns, however many there are.
"""

from collections import defaultdict
from collections.abc import Sequence

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.controllers import selection
from leaderworkerset.core.leaderworkerset.groups import Group, describe
from leaderworkerset.core.pod.reconcile import is_leader


class GroupFacts:
    """Follows two informers from their first object on."""

    def __init__(self, pods: Informer, statefulsets: Informer) -> None:
        self._pods = pods.store
        self._statefulsets = statefulsets.store
        self._groups: defaultdict[ObjectKey, dict[ObjectKey, Group]] = defaultdict(dict)
        pods.subscribe(self._pod_changed)
        statefulsets.subscribe(self._statefulset_changed)

    def of(self, lws: ObjectKey) -> Sequence[Group]:
        """Return the groups of the LeaderWorkerSet with this key."""
        return tuple(self._groups[lws].values()) if lws in self._groups else ()

    def _pod_changed(self, change: Change) -> None:
        if change.old is not None and is_leader(change.old):
            self._forget(change.old)
        if change.new is not None and is_leader(change.new):
            self._note(change.new)

    def _statefulset_changed(self, change: Change) -> None:
        leader = self._pods.get(meta.key(change.object))
        if leader is not None and is_leader(leader):
            self._note(leader)

    def _note(self, leader: JSONObject) -> None:
        key = meta.key(leader)
        self._groups[selection.lws_key(leader)][key] = describe(leader, self._statefulsets.get(key))

    def _forget(self, leader: JSONObject) -> None:
        lws = selection.lws_key(leader)
        self._groups[lws].pop(meta.key(leader), None)
        if not self._groups[lws]:
            del self._groups[lws]
