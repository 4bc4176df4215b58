"""Opens the gate of a leader with an index once the group before it is gone, or at once (N-GATE-10).

Leaders with `spec.scheduling` have it, as pods of two groups with one index would hold the places of each other; and those
of groups that stay on their nodes, which they learn by the patch that opens it.
"""

from kuberuntime.objects import meta
from kuberuntime.plan import Patch
from leaderworkerset.api import groupname, labels
from leaderworkerset.core import decisionevents
from leaderworkerset.core.leaderworkerset import gatedleaders
from leaderworkerset.core.policies import formernodes, replacement
from leaderworkerset.core.policies.policy import LiveGroup


def decide(group: LiveGroup) -> tuple[Patch, ...]:
    """Return the patch of a gated leader: it goes ahead, or it names the group that it waits for, once."""
    leader = group.leader
    if groupname.is_hash(leader) or not replacement.is_gated(leader):
        return ()
    found = formernodes.of(group.obj, group.record)
    if group.lws.spec.scheduling is None:
        return (gatedleaders.open_gate(leader, found),)
    named = meta.annotations(leader).get(labels.REPLACES, "")
    if all(meta.uid(pod) == meta.uid(leader) for pod in group.pods):
        return (gatedleaders.admit(group.obj, leader, named, found),)
    if named:
        return ()
    event = decisionevents.predecessor_awaited(group.obj, leader)
    return (gatedleaders.wait_for(leader, meta.name(leader), event),)
