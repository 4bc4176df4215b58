"""Determines whether a failed group is condemned. A condemned group is not ready until it is recreated.

Pods of such a group may be Ready, because a kubelet restarts failed containers while the group waits for its
recreation. The status, rollouts, disruption budgets and commands must not count this group as ready.

Input: the LeaderWorkerSet, the leader, its worker StatefulSet, the recreation record, and the pods that may have
failed. A failure counts as soon as a pod reports it, even if its record cannot be written.
"""

from collections.abc import Collection, Sequence

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import leaderworkerset, recreationrecord
from leaderworkerset.core.policies import failures
from leaderworkerset.core.policies.failures import RestartExemption


def is_condemned(
    obj: JSONObject,
    leader: JSONObject,
    workers: JSONObject | None,
    record: JSONObject | None,
    suspects: Collection[JSONObject],
    excuses: Sequence[RestartExemption] = (),
) -> bool:
    """Return whether the leader's group failed. `suspects` are restarted or terminating pods of the group.

    Return False if the LeaderWorkerSet is deleted, is unreadable, or never recreates groups.
    """
    is_recorded = recreationrecord.requires_recreation(record, leader)
    if not obj or not (is_recorded or suspects):
        return False
    try:
        lws = leaderworkerset.decode(obj)
    except ValueError:
        return False
    if not failures.recreates_groups(lws):
        return False
    return is_recorded or failures.has_failed_member(lws, leader, workers, suspects, excuses)
