"""The ends of groups that run to completion, and the deletion of their LeaderWorkerSet in time.

In: a live group, or the facts about a LeaderWorkerSet. Out: the writes, or when to decide again.
"""

from datetime import datetime, timedelta
from typing import Final, assert_never

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Delete, Patch, guarded_delete
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import COMPLETE, FAILED
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.completion import finishing
from leaderworkerset.core import decisionevents
from leaderworkerset.core.extensions import SetExpiry
from leaderworkerset.core.leaderworkerset.decision import SetFacts
from leaderworkerset.core.policies import restartpolicy
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup, PolicyDecision
from leaderworkerset.core.restarts import retention

FINISHED_FOR_KUEUE: Final = {labels.POD_GROUP_SERVING: None, labels.RETRIABLE_IN_GROUP: "false"}
"""A group that serves is never finished (R-KQ-12), others are when no pod of it runs and one is not to be tried again (R-KQ-34)."""


def keep_ended(group: LiveGroup) -> PolicyDecision:
    """End the pods of a marked group, unless that was done, or a user lets it run again."""
    leader, end = group.leader, groupname.end_of(group.leader)
    if end is None:
        return NOTHING
    is_done = meta.is_deleting(leader) or retention.is_recovered(leader)
    return PolicyDecision(holds="the group has ended", actions=() if is_done else (_end(group, end),))


def finish(group: LiveGroup) -> PolicyDecision:
    """Mark the leader of a group that ends by itself, then end the group: its container may be running again."""
    end = finishing.end_of(group.lws, group.leader, group.revisions, group.now)
    if end is not None:
        return PolicyDecision(holds="the group ends", actions=(mark(group.leader, end), _end(group, end)))
    left = finishing.time_left(finishing.settings_of(group.lws), group.leader, group.revisions, group.now)
    return NOTHING if left is None else PolicyDecision(requeue_after=left.total_seconds())


def mark(leader: JSONObject, end: GroupEnd) -> Patch:
    """Mark and keep the leader of a group that ended by itself. Kueue also finishes its Workload."""
    marks = {labels.GROUP_ENDED: end.value, labels.RECOVER: None}
    marks |= FINISHED_FOR_KUEUE if labels.QUEUE_NAME in meta.labels(leader) else {}
    return retention.mark(leader, {"annotations": marks, "finalizers": [retention.FINALIZER]})


def _end(group: LiveGroup, end: GroupEnd) -> Delete:
    name, index = meta.name(group.leader), groupname.label(group.leader)
    match end:
        case GroupEnd.COMPLETE:
            note = f"Leader pod {name} has exited with code 0: group {index} is complete"
        case GroupEnd.LATE:
            note = f"Group {index} is not complete at its deadline: ended it"
        case _:
            assert_never(end)
    return restartpolicy.delete_leader(group, decisionevents.group_ended(group.obj, group.leader, end, note))


def expire(facts: SetFacts, now: datetime) -> SetExpiry:
    """Delete a LeaderWorkerSet whose time after its end is over, or return the time until then."""
    if labels.TTL_AFTER_FINISHED not in facts.lws.annotations:
        return SetExpiry()
    left = finishing.expiry(facts.lws, (COMPLETE.type, FAILED.type), now)
    if left is None or left > timedelta():
        return SetExpiry(seconds=None if left is None else left.total_seconds())
    note = f"Deleted LeaderWorkerSet {facts.lws.name}: its time after the end is over"
    expired = decisionevents.expired(facts.obj, note)
    return SetExpiry((guarded_delete(LEADERWORKERSETS, facts.obj, on_success=(expired,)),))
