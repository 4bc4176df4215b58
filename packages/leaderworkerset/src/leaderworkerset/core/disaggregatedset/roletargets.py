"""Computes the desired groups of each role, and the rollout limits (R-DS-25, R-DS-40 to R-DS-42)."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from kuberuntime.objects import intstr
from kuberuntime.objects.intstr import IntOrString
from leaderworkerset.api.disaggregatedset import Role

Scalers: TypeAlias = Mapping[str, int]
"""The replicas of External roles as set by scalers. A role is absent if its scaler name is in use."""


class RoleBudget(Struct, frozen=True):
    """The maximum numbers of groups above and below the target during a rollout."""

    surge: int = 1
    unavailable: int = 0


def target_replicas(role: Role, scalers: Scalers, fallback: int) -> int:
    """Return the desired groups of a role in a slice, or `fallback` if they are not specified."""
    return scalers.get(role.name, fallback) if role.is_external else role.replicas


def role_budget(role: Role | None, target: int) -> RoleBudget:
    """Return the rollout limits of a role with `target` groups (R-DS-42). A removed role has the default limits."""
    configuration = None if role is None else role.rolling_update
    if configuration is None:
        return RoleBudget()
    surge = _scale_value(configuration.max_surge, target, up=True)
    unavailable = _scale_value(configuration.max_unavailable, target, up=False)
    return RoleBudget(surge, unavailable) if unavailable > 0 or surge > 0 else RoleBudget()


def _scale_value(value: IntOrString | None, total: int, *, up: bool) -> int:
    if value is None or not intstr.is_scalable(value):
        return 0
    return max(0, intstr.scale(value, total, up=up))
