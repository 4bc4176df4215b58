"""Tests that the verbs of scenarios have the same effect in virtual time, with and without nodes."""

import pytest
from tests.scenarioverbs import use_verbs
from tests.simulation.cluster import Settings, SimulatedCluster, simulated
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster

from localkube.controllers.nodes.nodes import NodeSettings


@simulated(Settings(nodes=NodeSettings(count=2)))
async def test_simulated_cluster_has_all_verbs(world: SimulatedCluster) -> None:
    await use_verbs(world)


@pytest.mark.virtual_time
async def test_cluster_without_nodes_has_all_verbs() -> None:
    async with NodelessCluster().running() as cluster, cluster.managed():
        await use_verbs(cluster, has_nodes=False)
