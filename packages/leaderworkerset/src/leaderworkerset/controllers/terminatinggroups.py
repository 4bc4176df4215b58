"""Finds terminating groups with random keys, whose leaders are terminating or deleted.

Input: all changes of pods and of worker StatefulSets, whose controller may create pods while they exist. Output: the
leader names of such groups of a LeaderWorkerSet, and the time by which the last pod of each group must have exited.
Only groups with random keys are tracked.
"""

from collections.abc import Collection, Mapping

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import groupname
from leaderworkerset.core.policies.replacement import is_gated

UNKNOWN = "~"
"""The end time of a pod without a deletion timestamp. It is later than any other time."""


class TerminatingGroups:
    """The end times by LeaderWorkerSet, leader, and pod (empty for a StatefulSet)."""

    def __init__(self, pods: Informer, statefulsets: Informer) -> None:
        self._sets: dict[ObjectKey, dict[str, dict[str, str]]] = {}
        pods.subscribe(self._handle_pod_change)
        statefulsets.subscribe(self._handle_workers_change)

    def end_times(self, lws: ObjectKey, staying: Collection[str]) -> Mapping[str, str]:
        """Return the end times of groups without a remaining leader."""
        groups = self._sets.get(lws, {})
        return {leader: max(pods.values()) for leader, pods in groups.items() if leader not in staying}

    def _handle_pod_change(self, change: Change) -> None:
        if change.old is not None and _holds_capacity(change.old):
            self._remove(change.old, groupname.leader_name(change.old))
        if change.new is not None and _holds_capacity(change.new):
            end = meta.metadata(change.new).get("deletionTimestamp") or UNKNOWN
            self._put(change.new, groupname.leader_name(change.new), str(end))

    def _handle_workers_change(self, change: Change) -> None:
        if change.old is not None and (leader := _leader_of_workers(change.old)):
            self._remove(change.old, leader)
        if change.new is not None and (leader := _leader_of_workers(change.new)):
            self._put(change.new, leader, "")

    def _put(self, obj: JSONObject, leader: str, end: str) -> None:
        groups = self._sets.setdefault(groupname.lws_key(obj), {})
        groups.setdefault(leader, {})[_object_id(obj)] = end

    def _remove(self, obj: JSONObject, leader: str) -> None:
        lws = groupname.lws_key(obj)
        groups = self._sets[lws]
        del groups[leader][_object_id(obj)]
        if not groups[leader]:
            del groups[leader]
        if not groups:
            del self._sets[lws]


def _holds_capacity(pod: JSONObject) -> bool:
    return groupname.has_random_key(pod) and not is_gated(pod)


def _leader_of_workers(statefulset: JSONObject) -> str:
    """Return the leader of a worker StatefulSet in a group with a random key, or an empty string."""
    owner = meta.controller_of(statefulset)
    is_keyed = len(groupname.group_label(statefulset)) == groupname.KEY_CHARACTERS
    return str(owner["name"]) if owner is not None and owner["kind"] == PODS.kind and is_keyed else ""


def _object_id(obj: JSONObject) -> str:
    """Return a key that distinguishes a pod from a StatefulSet with the same name."""
    return f"{obj['kind']}/{meta.name(obj)}"
