"""Tests the desired size of a role, and its rollout budgets (R-DS-25, R-DS-42)."""

from typing import Any

import pytest

from leaderworkerset.api.disaggregatedset import (
    Role,
    RoleRollingUpdate,
    RoleRolloutStrategy,
    RoleSpec,
    Scaling,
    ScalingMode,
)
from leaderworkerset.core.disaggregatedset.roletargets import RoleBudget, role_budget, target_replicas


def rolled(**fields: Any) -> Role:
    strategy = RoleRolloutStrategy(rolling_update_configuration=RoleRollingUpdate(**fields))
    return Role(name="prefill", spec=RoleSpec(replicas=10, rollout_strategy=strategy))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max_surge": 2, "max_unavailable": 1}, RoleBudget(2, 1)),
        ({"max_surge": "25%", "max_unavailable": "25%"}, RoleBudget(3, 2)),
        ({"max_unavailable": 1}, RoleBudget(0, 1)),
        ({"max_surge": 0, "max_unavailable": 0}, RoleBudget(1, 0)),
        ({"max_surge": -3}, RoleBudget(1, 0)),
        ({"max_surge": "a lot", "max_unavailable": 2}, RoleBudget(0, 2)),
        ({}, RoleBudget(1, 0)),
    ],
    ids=["numbers", "percentages", "absent is none", "both 0", "negative", "not scalable", "nothing given"],
)
def test_role_budget_follows_from_the_configuration(given: dict[str, Any], expected: RoleBudget) -> None:
    """A role budget is read from the configuration (R-DS-42)."""
    assert role_budget(rolled(**given), 10) == expected


@pytest.mark.parametrize("role", [None, Role(name="prefill"), Role(name="prefill", spec=RoleSpec())])
def test_role_without_a_configuration_may_surge_by_one(role: Role | None) -> None:
    """Without a configuration, a role may surge by one group (R-DS-42)."""
    assert role_budget(role, 10) == RoleBudget(1, 0)


def test_scaler_sets_the_size_of_external_roles_only() -> None:
    """A scaler sets only the size of external roles (R-DS-25)."""
    external = Role(name="prefill", scaling=Scaling(mode=ScalingMode.EXTERNAL), spec=RoleSpec(replicas=4))
    assert target_replicas(external, {"prefill": 7}, 3) == 7
    assert target_replicas(external, {}, 3) == 3
    assert target_replicas(rolled(), {"prefill": 7}, 3) == 10
