"""Tests that the verbs of scenarios have the same effect on the clusters of integration tests."""

from tests.integration.clusters.space import LiveScenario
from tests.scenarioverbs import use_verbs


async def test_live_scenario_has_all_verbs(space: LiveScenario) -> None:
    await use_verbs(space)
