"""Restart policy: a pod that fails ends its whole group, which is made anew (R-POD-3 to R-POD-5).

Which failures count is in `failures.py`, when a group may be recreated in `recreation.py`. In: a live group. Out: the
deletion of its leader and the record of the recreation, or how long to wait for it.
"""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from kuberuntime.plan import Apply, Delete
from leaderworkerset.api import labels
from leaderworkerset.core import events
from leaderworkerset.core.policies import failures, recreation
from leaderworkerset.core.policies.failures import Members
from leaderworkerset.core.policies.policy import Decision, LiveGroup, Policy
from leaderworkerset.core.policies.recreation import Recreation


def decide(group: LiveGroup) -> Decision:
    """Delete the leader where a pod of the group failed, or wait until its time has come (R-POD-5)."""
    if not failures.is_active(group.lws):
        return Decision()
    previous = recreation.read(group.record)
    if previous is not None and previous.leader == meta.uid(group.leader):
        return _carry_out(group, previous)
    failed = failures.failed_pod(group.lws, Members(group.leader, group.pods, group.gone, group.statefulsets))
    if failed is None:
        return Decision()
    new = recreation.following(previous, group.leader, failed, group.now)
    carried = _carry_out(group, new)
    return Decision(
        holds=carried.holds,
        actions=(*carried.actions, _record(group, new)),
        requeue_after=carried.requeue_after,
    )


def _carry_out(group: LiveGroup, due: Recreation) -> Decision:
    holds = f"group is recreated: pod {due.failed_pod} failed"
    wait = (due.due - group.now).total_seconds()
    if wait > 0:
        return Decision(holds=holds, requeue_after=wait)
    name, index = meta.name(group.leader), meta.labels(group.leader).get(labels.GROUP_INDEX, "")
    note = f"Worker pod {due.failed_pod} failed, deleted leader pod {name} to recreate group {index}"
    delete = Delete(
        resource=PODS,
        key=meta.key(group.leader),
        propagation="Foreground",
        uid=meta.uid(group.leader),
        on_success=(events.recreating_group(group.obj, group.leader, note),),
    )
    return Decision(holds=holds, actions=(delete,))


def _record(group: LiveGroup, new: Recreation) -> Apply:
    """Record the recreation: what is due now is done first, what is due later must not be forgotten."""
    wait = int((new.due - group.now).total_seconds())
    note = f"Pod {new.failed_pod} failed again, group is recreated in {wait} s (number {new.count} in a row)"
    return Apply(
        resource=CONTROLLER_REVISIONS,
        object=recreation.build(group.obj, group.leader, new),
        manager=labels.FIELD_MANAGER,
        on_success=(events.backing_off(group.obj, group.leader, note),) if wait else (),
    )


POLICY: Final = Policy(name="restart", decide=decide)
