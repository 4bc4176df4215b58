"""The parts of the manager carry the names that logs, metrics and dashboards know them by."""

from leaderworkerset.kinds.managed import MANAGED


def test_two_controllers_and_four_webhooks() -> None:
    """R-ARC-1."""
    assert tuple(spec.name for spec in MANAGED.controllers) == ("leaderworkerset", "pod")
    assert len(MANAGED.webhooks) == 4
