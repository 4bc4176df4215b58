"""The groups with random keys that end: they have pods, but no leader that stays.

In: changes of pods, from the first one on. Out: for one LeaderWorkerSet the leaders' names of such groups, and when the
last pod of each shall have ended. Only pods of groups with random keys are followed.
"""

from collections.abc import Collection, Mapping

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api import groupname
from leaderworkerset.controllers import indexes
from leaderworkerset.core.policies.replacement import is_gated

UNKNOWN = "~"
"""The end of a pod that is not being deleted yet: later than any time."""


class Endings:
    """When the pods of each group end, by LeaderWorkerSet, leader and pod."""

    def __init__(self, pods: Informer) -> None:
        self._sets: dict[ObjectKey, dict[str, dict[str, str]]] = {}
        pods.subscribe(self._pod_changed)

    def of(self, lws: ObjectKey, staying: Collection[str]) -> Mapping[str, str]:
        """Return the ends of the groups of a LeaderWorkerSet whose leaders are not among those that stay."""
        groups = self._sets.get(lws, {})
        return {leader: max(pods.values()) for leader, pods in groups.items() if leader not in staying}

    def _pod_changed(self, change: Change) -> None:
        if change.old is not None and _holds_capacity(change.old):
            self._remove(change.old)
        if change.new is not None and _holds_capacity(change.new):
            groups = self._sets.setdefault(indexes.lws_key(change.new), {})
            end = meta.metadata(change.new).get("deletionTimestamp") or UNKNOWN
            groups.setdefault(groupname.leader_of(change.new), {})[meta.name(change.new)] = str(end)

    def _remove(self, pod: JSONObject) -> None:
        lws, leader = indexes.lws_key(pod), groupname.leader_of(pod)
        groups = self._sets[lws]
        del groups[leader][meta.name(pod)]
        if not groups[leader]:
            del groups[leader]
        if not groups:
            del self._sets[lws]


def _holds_capacity(pod: JSONObject) -> bool:
    return groupname.is_hash(pod) and not is_gated(pod)
