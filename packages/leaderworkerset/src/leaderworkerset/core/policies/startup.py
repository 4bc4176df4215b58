"""Creates workers after their leader is ready if the startup policy is `LeaderReady` (R-POD-7)."""

from kuberuntime.objects import meta
from leaderworkerset.api import groupname
from leaderworkerset.api.policytypes import AWAITS_LEADER
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision


def decide(group: LiveGroup) -> PolicyDecision:
    """Delay the workers until the leader is ready, if the current spec requires it.

    For a group with a random key, the leader's containers must be ready, because the pod is ready only when its workers
    are ready (N-HASH-8).
    """
    is_gated = group.lws.spec.startup_policy.waits_for_leader
    condition = "ContainersReady" if groupname.has_random_key(group.leader) else "Ready"
    if is_gated and not meta.is_condition_true(group.leader, condition):
        return PolicyDecision(delay_reason=AWAITS_LEADER)
    return PolicyDecision()
