"""Runs scenarios on the simulated cluster, in virtual time, without a network and without faults."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testkit.clusters.embedded import ModeledPods, nodes, program_of
from testkit.virtualtime import VirtualClock
from tests.simulation.cluster import Settings, SimulatedCluster
from tests.simulation.cluster import running as simulated
from tests.simulation.trace import Trace

from localkube.apiserver.inprocess import InProcessTransport
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner


@dataclass
class VirtualCluster(ModeledPods):
    """Implements `Cluster` with the simulated cluster."""

    world: SimulatedCluster
    name: str = field(default="virtual", init=False)

    @property
    def clock(self) -> VirtualClock:
        """Return the virtual clock of the cluster."""
        return self.world.clock

    @property
    def kubeconfig(self) -> Path:
        """Raise an error, because the cluster can only be used in this process."""
        raise NotImplementedError("a simulated cluster accepts no connections; name the clusters of this test")

    @property
    def runner(self) -> SimulatedRunner:  # type: ignore[override]
        """Return the component that runs the processes of the cluster."""
        return self.world.runner

    def transport(self, user_agent: str) -> InProcessTransport:
        """Call the API server directly."""
        return InProcessTransport(self.world.server, user_agent)


@asynccontextmanager
async def virtual_cluster(directory: Path) -> AsyncIterator[VirtualCluster]:
    """Run a simulated cluster with the webhooks of LeaderWorkerSets, but without managers."""
    settings = Settings(managers=(), script=program_of, nodes=nodes().parse())
    async with simulated(settings, Trace(), directory) as world:
        yield VirtualCluster(world)
