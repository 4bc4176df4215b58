"""Finds groups with an in-place update in progress, based on their leaders and worker StatefulSets.

Input: the description of a group, its leader, and its worker StatefulSet. Output: the description, in which such a
group is not ready.
"""

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.capabilities.inplace import inplacepods
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts, is_paused


def mark_updating(facts: GroupFacts, leader: JSONObject, worker_statefulset: JSONObject | None) -> GroupFacts:
    """Return the description of a group. A group with an in-place update in progress is not ready."""
    updating = updating_to(leader, worker_statefulset)
    if not updating:
        return facts
    return replace(facts, is_leader_ready=False, target_revision=updating, is_rejected=is_rejected(leader))


def excuses(_lws: LeaderWorkerSet | None, pod: JSONObject, container: JSONObject) -> bool:
    """Return whether a container was restarted only because its image changed."""
    return (container.get("restartCount") or 0) <= inplacepods.expected_restarts(pod).get(container.get("name", ""), 0)


def updating_to(leader: JSONObject, worker_statefulset: JSONObject | None) -> str:
    """Return the target revision of a leader's in-place update, or an empty string if there is none.

    The update is complete when the leader and workers have the revision, the worker StatefulSet is no longer held, and
    the new containers of the leader are running. The new containers of the workers are running before that.
    """
    mark = meta.annotations(leader).get(labels.IN_PLACE_REVISION, "")
    if not mark:
        return ""
    is_done = groupname.revision_key(leader) == mark and inplacepods.is_update_complete(leader)
    if is_done and worker_statefulset is not None:
        is_same = groupname.revision_key(worker_statefulset) == mark
        is_done = is_same and not is_paused(worker_statefulset)
    return "" if is_done else mark


def is_rejected(leader: JSONObject) -> bool:
    """Return whether the nodes cannot resize the pods of a marked group to its revision."""
    own = meta.annotations(leader)
    return labels.IN_PLACE_REFUSED in own and own[labels.IN_PLACE_REFUSED] == own.get(labels.IN_PLACE_REVISION)
