"""Whether a group is condemned: it failed, and is to be recreated or was given up, so it is not ready.

Pods of such a group may be Ready: a kubelet restarts a failed container while the group waits for its recreation. The
status, rollouts, disruption budgets and commands must not count this group as ready.

In: the LeaderWorkerSet, the leader, the StatefulSet of its workers, the record of recreations, and the pods that may
have failed. A failure counts from the moment at which a pod shows it, even if its record cannot be written.
"""

from collections.abc import Collection, Sequence

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import leaderworkerset, recreationrecord
from leaderworkerset.core.policies import failures
from leaderworkerset.core.policies.failures import Excuse


def is_condemned(
    obj: JSONObject,
    leader: JSONObject,
    workers: JSONObject | None,
    record: JSONObject | None,
    suspects: Collection[JSONObject],
    excuses: Sequence[Excuse] = (),
) -> bool:
    """Return whether the group of this leader failed; `suspects` are its pods that restarted or are being deleted.

    A LeaderWorkerSet that is deleted, unreadable or never recreates groups condemns none.
    """
    is_recorded = recreationrecord.condemns(record, leader)
    if not obj or not (is_recorded or suspects):
        return False
    try:
        lws = leaderworkerset.decode(obj)
    except ValueError:
        return False
    if not failures.is_active(lws):
        return False
    return is_recorded or failures.has_failed_member(lws, leader, workers, suspects, excuses)
