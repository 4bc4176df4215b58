"""The world of a test: a control plane with an installation, and managers as processes behind its webhook service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.process import Plane
from tests.integration.clusters.cluster import transport
from tests.integration.clusters.kubernetes import KubernetesCluster
from tests.integration.manager import installation
from tests.integration.manager.balancer import Balancer
from tests.integration.manager.groups import counter
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

    async def prepare(self, name: str, **configuration: Any) -> Replica:
        """Prepare a manager with the rights of its account, and start nothing."""
        kubeconfig = self.directory / f"{name}.kubeconfig"
        await installation.write_kubeconfig(self.client, self.plane.kubeconfig, kubeconfig)
        replica = Replica(self.directory, name, kubeconfig, configuration)
        self.replicas.append(replica)
        return replica

    async def start(self, name: str, **configuration: Any) -> Replica:
        """Start a manager behind the webhook service and wait until it is ready."""
        replica = await self.prepare(name, **configuration)
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

    async def writes(self) -> dict[str, dict[str, int]]:
        """Return the writes of every replica by verb and resource, but those to the lease and for reviews of tokens."""
        token = await installation.token_of(self.client, MANAGER)
        found = {}
        for replica in self.replicas:
            samples = counter((await replica.metrics_with(token))[1], "lws_api_requests_total")
            found[replica.name] = {
                labels: count
                for labels, count in samples.items()
                if not any(word in labels for word in ('"get"', '"list"', '"watch"', '"leases"', "reviews"))
            }
        return found


@asynccontextmanager
async def opened(plane: Plane, directory: Path) -> AsyncIterator[World]:
    """Install, and clear everything away at the end."""
    client = Client(transport(KubernetesCluster(plane.kubeconfig), "tests"))
    async with Balancer() as balancer:
        await installation.install(client, balancer.port)
        world = World(plane, client, balancer, directory, [])
        try:
            yield world
        finally:
            for replica in world.replicas:
                replica.end()
            await installation.clear(client)
            await client.close()
