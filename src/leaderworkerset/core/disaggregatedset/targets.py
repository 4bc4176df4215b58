"""How many groups each role shall have, and how fast a rollout may replace them (R-DS-25, R-DS-40 to R-DS-42)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kuberuntime.objects import intstr
from kuberuntime.objects.intstr import IntOrString
from leaderworkerset.api.disaggregatedset import Role

Scalers: TypeAlias = Mapping[str, int]
"""What the scalers of External roles ask for, by role; a role is absent while somebody else has its scaler's name."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Groups beyond the target, and groups below it, that a rollout may reach."""

    surge: int = 1
    unavailable: int = 0


def target(role: Role, scalers: Scalers, fallback: int) -> int:
    """Return the groups that a role shall have in a slice; `fallback` where nobody says."""
    return scalers.get(role.name, fallback) if role.is_external else role.replicas


def budget(role: Role | None, wanted: int) -> Budget:
    """Return the budgets of a role with so many groups (R-DS-42); a role that was removed has the default."""
    given = None if role is None else role.rolling_update
    if given is None:
        return Budget()
    surge = _scaled(given.max_surge, wanted, up=True)
    unavailable = _scaled(given.max_unavailable, wanted, up=False)
    return Budget(surge, unavailable) if unavailable > 0 or surge > 0 else Budget()


def _scaled(value: IntOrString | None, whole: int, *, up: bool) -> int:
    if value is None or not intstr.is_scalable(value):
        return 0
    return max(0, intstr.scale_up(value, whole) if up else intstr.scale_down(value, whole))
