"""Maintains the state of all groups after each change, so that a reconciliation does not read pods.

Input: changes of pods, StatefulSets and recreation records. Output: the groups of one LeaderWorkerSet as values, and
their summary. A change is processed only for its own group, regardless of the number of groups. The groups of a
LeaderWorkerSet are tracked from its first request on, so that unrelated pods with the same labels has no cost.
"""

from math import inf

from kuberuntime.cache.informer import Change
from kuberuntime.clock import Clock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api import groupname, recreationrecord
from leaderworkerset.api.groupname import is_leader
from leaderworkerset.capabilities.deciding import describe_group, is_condemned
from leaderworkerset.controllers import indexes
from leaderworkerset.controllers.indexes import Informers
from leaderworkerset.core.leaderworkerset.groupindex import Groups
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.policies import failures


class GroupCache:
    """The groups of every LeaderWorkerSet. Subscribe to the informers before they contain objects."""

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._clock = clock
        self._leaderworkersets = informers.leaderworkersets.store
        self._pods = informers.pods.store
        self._statefulsets = informers.statefulsets.store
        self._revisions = informers.revisions.store
        self._sets: dict[ObjectKey, Groups] = {}
        self._suspects: dict[ObjectKey, dict[str, JSONObject]] = {}
        """The restarted or terminating pods in each leader's group."""
        self._losses: dict[ObjectKey, dict[ObjectKey, float]] = {}
        """The time of a lost worker that requires recreating its group, by LeaderWorkerSet and leader."""
        self.altered_by: Change | None = None
        """The last change to a failed or recovered pod that affected the state of its group."""
        informers.leaderworkersets.subscribe(self._handle_policy_change)
        informers.pods.subscribe(self._handle_pod_change)
        informers.statefulsets.subscribe(self._handle_statefulset_change)
        informers.revisions.subscribe(self._handle_record_change)

    def groups(self, lws: ObjectKey) -> Groups:
        """Return the current groups of a LeaderWorkerSet."""
        if lws not in self._sets:
            self._sets[lws] = groups = Groups(lws.name)
            for leader in self._pods.by_index(indexes.LEADERS, str(lws)):
                groups.put(meta.name(leader), self._describe(leader))
        return self._sets[lws]

    def forget(self, lws: ObjectKey) -> None:
        """Stop tracking the groups of a deleted LeaderWorkerSet."""
        self._sets.pop(lws, None)
        self._losses.pop(lws, None)

    def last_loss(self, lws: ObjectKey) -> float:
        """Return the time of the last lost worker whose group has not been recreated or recorded, or -inf."""
        losses = self._losses.get(lws, {})
        for leader_key in list(losses):
            leader = self._pods.get(leader_key)
            if (
                leader is None
                or meta.is_deleting(leader)
                or recreationrecord.requires_recreation(self._record(leader), leader)
            ):
                del losses[leader_key]
        if not losses:
            self._losses.pop(lws, None)
        return max(losses.values(), default=-inf)

    def _handle_policy_change(self, change: Change) -> None:
        """Recompute the state of groups with failed pods if the restart policy or an annotation changed."""
        groups = self._sets.get(meta.key(change.object))
        if groups is None or None in (change.old, change.new) or _policy(change.old) == _policy(change.new):
            return
        for name, group in list(groups.by_leader.items()):
            key = ObjectKey(meta.namespace(change.object), name)
            if group.is_condemned or key in self._suspects:
                self._update_group(key)

    def _handle_pod_change(self, change: Change) -> None:
        suspected = self._note_suspect(change)
        self._note_loss(change)
        if not is_leader(change.object):
            leader = None if suspected is None else self._pods.get(suspected)
            is_led = leader is not None and indexes.is_own_leader(leader) and not meta.is_deleting(leader)
            if leader is not None and is_led and self._put(leader, self._describe(leader)):
                self.altered_by = change
            return
        if change.old is not None and indexes.is_own_leader(change.old) and _was_removed(change.old, change.new):
            self._put(change.old, None)
        if change.new is not None and indexes.is_own_leader(change.new):
            has_news = self._put(change.new, self._describe(change.new)) and suspected is not None
            self.altered_by = change if has_news else self.altered_by

    def _note_suspect(self, change: Change) -> ObjectKey | None:
        """Record whether a pod might have failed. Return its leader if this is or was the case."""
        is_suspect = change.new is not None and failures.has_failed(change.new)
        if not is_suspect and not self._suspects:
            return None
        leader = ObjectKey(meta.namespace(change.object), groupname.leader_name(change.object))
        known, name = self._suspects.get(leader, {}), meta.name(change.object)
        was_suspect = known.pop(name, None) is not None
        if is_suspect:
            self._suspects[leader] = known
            known[name] = change.object
        elif not known:
            self._suspects.pop(leader, None)
        return leader if was_suspect or is_suspect else None

    def _note_loss(self, change: Change) -> None:
        """Record the deletion of a worker until its group is recreated. The deletion is not otherwise visible."""
        pod, was_deleting = change.object, change.old is None or meta.is_deleting(change.old)
        if is_leader(pod) or was_deleting or not meta.is_deleting(pod):
            return
        leader = self._pods.get(ObjectKey(meta.namespace(pod), groupname.leader_name(pod)))
        if leader is None or meta.is_deleting(leader):
            return
        lws, workers = groupname.lws_key(leader), indexes.find_workers(leader, self._statefulsets)
        if is_condemned(self._leaderworkersets.get(lws) or {}, leader, workers, None, [pod]):
            self._losses.setdefault(lws, {})[meta.key(leader)] = self._clock.monotonic()

    def _handle_statefulset_change(self, change: Change) -> None:
        key, owner = meta.key(change.object), meta.controller_of(change.object)
        for name in {key.name, owner["name"] if owner else key.name}:
            self._update_group(ObjectKey(key.namespace, name))

    def _handle_record_change(self, change: Change) -> None:
        if (name := recreationrecord.leader_of(change.object)) != meta.name(change.object):
            self._update_group(ObjectKey(meta.namespace(change.object), name))

    def _update_group(self, leader_key: ObjectKey) -> None:
        leader = self._pods.get(leader_key)
        if leader is not None and indexes.is_own_leader(leader):
            self._put(leader, self._describe(leader))

    def _describe(self, leader: JSONObject) -> GroupFacts:
        workers = indexes.find_workers(leader, self._statefulsets)
        return describe_group(leader, workers, is_condemned=self._is_condemned(leader, workers))

    def _is_condemned(self, leader: JSONObject, workers: JSONObject | None) -> bool:
        """Return whether the group failed. The result does not change while its leader is terminating."""
        suspects = self._suspects.get(meta.key(leader), {}).values()
        lws = groupname.lws_key(leader)
        if meta.is_deleting(leader):
            groups = self._sets.get(lws)
            known = None if groups is None else groups.by_leader.get(meta.name(leader))
            if known is not None and known.uid == meta.uid(leader) and known.is_condemned:
                return True
            suspects = {}.values()
        record = self._record(leader)
        if record is None and not suspects:
            return False
        return is_condemned(self._leaderworkersets.get(lws) or {}, leader, workers, record, suspects)

    def _record(self, leader: JSONObject) -> JSONObject | None:
        return self._revisions.get(ObjectKey(meta.namespace(leader), recreationrecord.record_name(leader)))

    def _put(self, leader: JSONObject, group: GroupFacts | None) -> bool:
        """Record the new state of a group, or None if its leader was deleted. Return whether the state changed."""
        groups, name = self._sets.get(groupname.lws_key(leader)), meta.name(leader)
        if groups is None or groups.by_leader.get(name) == group:
            return False
        groups.put(name, group)
        return True


def _policy(lws: JSONObject | None) -> tuple[object, object]:
    lws = lws or {"metadata": {}}
    return (meta.spec(lws).get("leaderWorkerTemplate") or {}).get("restartPolicy"), meta.annotations(lws)


def _was_removed(old: JSONObject, new: JSONObject | None) -> bool:
    """Return whether the leader was deleted or no longer belongs to this LeaderWorkerSet."""
    return new is None or not indexes.is_own_leader(new) or groupname.lws_key(new) != groupname.lws_key(old)
