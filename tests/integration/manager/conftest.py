"""One control plane for all tests of the manager, and for each test a fresh installation with two replicas."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.controlplane import build
from tests.controlplane.process import Plane, control_plane
from tests.integration.clusters.cluster import transport
from tests.integration.clusters.kubernetes import KubernetesCluster, set_up
from tests.integration.manager import installation
from tests.integration.manager.balancer import Balancer
from tests.integration.manager.replicas import Replica, until

from leaderworkerset.api.meta import ObjectKey
from leaderworkerset.api.resources import LEASES
from leaderworkerset.install.metadata import LEASE, MANAGER
from leaderworkerset.install.settings import NAMESPACE
from leaderworkerset.kube.client import Client
from leaderworkerset.kube.errors import NotFound


@dataclass
class World:
    """A cluster with an installation, and the administrator's client."""

    plane: Plane
    client: Client
    balancer: Balancer
    directory: Path
    replicas: list[Replica]

    async def start(self, name: str, **configuration: Any) -> Replica:
        """Start a manager with the rights of its account, behind the webhook service."""
        kubeconfig = self.directory / f"{name}.kubeconfig"
        await installation.write_kubeconfig(self.client, self.plane.kubeconfig, kubeconfig)
        replica = Replica(self.directory, name, kubeconfig, configuration)
        self.replicas.append(replica)
        replica.start()
        self.balancer.backends.append(replica.webhooks)
        await replica.await_ready()
        return replica

    async def is_master(self, replica: Replica) -> bool:
        """Ask a replica whether it leads."""
        _, text = await replica.metrics_with(await installation.token_of(self.client, MANAGER))
        return 'leader_election_master_status{name="b8b2488c.x-k8s.io"} 1.0' in text

    async def await_master(self, replica: Replica) -> None:
        """Wait until a replica leads."""

        async def leads() -> bool:
            return await self.is_master(replica)

        await until(leads, *self.replicas)

    async def holder(self) -> str:
        """Return who holds the lease."""
        try:
            lease = await self.client.get(LEASES, ObjectKey(NAMESPACE, LEASE))
        except NotFound:
            return ""
        return str(lease["spec"].get("holderIdentity") or "")


Worlds: TypeAlias = Callable[[], AbstractAsyncContextManager[World]]


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201 - progress
    with control_plane(assets, tmp_path_factory.mktemp("plane")) as running:
        asyncio.run(set_up(KubernetesCluster(running.kubeconfig)))
        yield running


@pytest.fixture
def worlds(plane: Plane, tmp_path: Path) -> Worlds:
    """Return what opens the world of a test, inside of its event loop."""

    @asynccontextmanager
    async def world() -> AsyncIterator[World]:
        client = Client(transport(KubernetesCluster(plane.kubeconfig), "tests"))
        async with Balancer() as balancer:
            await installation.install(client, balancer.port)
            opened = World(plane, client, balancer, tmp_path, [])
            try:
                yield opened
            finally:
                for replica in opened.replicas:
                    replica.end()
                await installation.clear(client)
                await client.close()

    return world
