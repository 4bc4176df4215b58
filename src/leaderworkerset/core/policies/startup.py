"""Startup policy: with `LeaderReady`, workers are created once their leader is ready (R-POD-7)."""

from kuberuntime.objects import meta
from leaderworkerset.api.leaderworkerset import AWAITS_LEADER
from leaderworkerset.core.policies.policy import LiveGroup, PolicyDecision


def decide(group: LiveGroup) -> PolicyDecision:
    """Hold the workers back until the leader is ready, if the live spec requires it."""
    is_gated = group.lws.spec.startup_policy.awaits_leader
    if is_gated and not meta.is_condition_true(group.leader, "Ready"):
        return PolicyDecision(holds=AWAITS_LEADER)
    return PolicyDecision()
