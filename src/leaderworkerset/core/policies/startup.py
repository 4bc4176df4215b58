"""Startup policy: with `LeaderReady`, workers are created once their leader is ready (R-POD-7)."""

from typing import Final

from kuberuntime.objects import meta
from leaderworkerset.api.leaderworkerset import AWAITS_LEADER, StartupPolicy
from leaderworkerset.core.policies.policy import Decision, LiveGroup, Policy


def decide(group: LiveGroup) -> Decision:
    """Hold the workers back until the leader is ready, where the live spec asks for it."""
    is_gated = group.lws.spec.startup_policy == StartupPolicy.LEADER_READY
    if is_gated and not meta.is_condition_true(group.leader, "Ready"):
        return Decision(holds=AWAITS_LEADER)
    return Decision()


POLICY: Final = Policy(name="startup", decide=decide)
