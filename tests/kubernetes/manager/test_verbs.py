"""Tests that the verbs of scenarios have the same effect in a namespace of a real control plane."""

import pytest
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.world import InstalledCluster
from tests.scenarioverbs import use_verbs

pytestmark = pytest.mark.slow


async def test_checked_namespace_has_all_verbs(world: InstalledCluster) -> None:
    await world.start("a")
    await use_verbs(await CheckedNamespace(world.client, "verbs").open())
