"""Tests that the manager's components have the names that logs, metrics and dashboards use."""

from leaderworkerset.kinds.managedkinds import MANAGED


def test_manager_has_three_controllers_and_five_webhooks() -> None:
    """The manager has three controllers and five webhooks (R-ARC-1, R-DS-28, R-DS-8)."""
    assert tuple(spec.name for spec in MANAGED.controllers) == ("leaderworkerset", "pod", "disaggregatedset")
    assert len(MANAGED.webhooks) == 5
