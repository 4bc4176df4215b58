"""Converts the rollout strategy to numbers of unavailable and surge groups (R-ROLL-1).

Input: `spec`, with numbers or percentages. Output: a `Budget`. Rounding can reduce both to 0 (25 % of 2 is 0), so
that no group could ever be replaced. Unlike in the Go controller, one group may be unavailable in that case (Q-28).
`maxUnavailable` of the StatefulSet is then also 1 (R-LSTS-2).
"""

from msgspec import Struct

from kuberuntime.objects import intstr
from leaderworkerset.api.leaderworkerset import LeaderWorkerSetSpec


class Budget(Struct, frozen=True, kw_only=True):
    """The rollout strategy as numbers of groups (R-ROLL-1)."""

    replicas: int
    partition: int
    unavailable: int
    surge: int

    @property
    def max_groups(self) -> int:
        """Return the maximum number of groups."""
        return self.replicas + self.surge

    @property
    def max_unavailable(self) -> int:
        """Return the number of leaders that the StatefulSet controller may replace at the same time (R-LSTS-2)."""
        return max(1, self.unavailable + self.surge)

    def replicas_needed(self, unready: int) -> int:
        """Return the number of groups to retain while `unready` groups are unready or outdated (R-ROLL-3)."""
        if unready <= self.surge:
            return self.replicas + max(unready - self.unavailable, 0)
        return self.max_groups


def read(spec: LeaderWorkerSetSpec) -> Budget:
    """Resolve percentages of `spec.replicas`. Raise ValueError if a value is neither a number nor a percentage."""
    config = spec.rollout_strategy.rolling_update_configuration
    surge = min(max(intstr.scale(config.max_surge, spec.replicas, up=True), 0), spec.replicas)
    unavailable = max(intstr.scale(config.max_unavailable, spec.replicas, up=False), 0)
    return Budget(
        replicas=spec.replicas,
        partition=config.partition,
        unavailable=max(unavailable, 1) if surge == 0 else unavailable,
        surge=surge,
    )
