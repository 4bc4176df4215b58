"""Tests the totals on the first page."""

from tests import builders

from lwsctl.dashboard.pages import totals
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.model.leaderworkerset import view


def test_complete_sets_do_not_count_as_not_ready() -> None:
    running, complete = (builders.leaderworkerset_object(replicas=2, size=1) for _ in range(2))
    complete["status"] = {"observedGeneration": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    sums = totals.all_totals([view(running, []), view(complete, [])], PageFacts())
    assert sums == {"Groups": "0 / 2", "Ranks": "0 / 2"}, "the groups of a complete set are not missing"
