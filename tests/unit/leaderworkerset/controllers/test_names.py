"""The parts of the manager carry the names that logs, metrics and dashboards know them by."""

from leaderworkerset.controllers import leaderworkerset, pod
from leaderworkerset.webhooks import handlers


def test_two_controllers_and_four_webhooks() -> None:
    """R-ARC-1."""
    assert (leaderworkerset.NAME, pod.NAME) == ("leaderworkerset", "pod")
    assert len(handlers.HANDLERS) == 4
