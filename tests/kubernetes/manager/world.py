"""Runs a control plane with an installation, and managers as processes behind its webhook Service."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from testkit.clusters.kubernetes import KubernetesCluster
from tests.controlplane.audit import Audit
from tests.controlplane.process import Plane
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.balancer import Balancer
from tests.kubernetes.manager.replicas import Replica, until

from kuberuntime.client.client import Client
from kuberuntime.controller.eventrecorder import FOLD
from kuberuntime.errors import NotFoundError
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import LEASES
from leaderworkerset.api.metadata import LEASE
from leaderworkerset.install.installsettings import NAMESPACE

LEADER_POLL: Final = 0.2
"""The interval in seconds between two checks for a leader. Each check reads all metrics over a new connection."""

RENEWAL: Final = "update leases"
"""The only writes of an idle leader."""


@dataclass
class InstalledCluster:
    """A cluster with an installation, and a client with administrator permissions."""

    plane: Plane
    client: Client
    balancer: Balancer
    directory: Path
    replicas: list[Replica]
    scraper: str
    """A token of the account that may read metrics."""

    async def prepare(self, name: str, **configuration: Any) -> Replica:
        """Prepare a manager with the permissions of its account, without starting it."""
        kubeconfig = self.directory / f"{name}.kubeconfig"
        await installation.write_kubeconfig(self.client, self.plane.kubeconfig, kubeconfig)
        replica = Replica(self.directory, name, kubeconfig, configuration)
        self.replicas.append(replica)
        return replica

    async def start(self, name: str, **configuration: Any) -> Replica:
        """Start a manager behind the webhook Service, and wait until it is ready."""
        return await self.begin(await self.prepare(name, **configuration))

    async def begin(self, replica: Replica) -> Replica:
        """Start a prepared manager."""
        replica.start()
        self.balancer.backends.append(replica.webhooks)
        await replica.await_ready()
        return replica

    async def is_master(self, replica: Replica) -> bool:
        """Return whether a replica leads."""
        _, text = await replica.metrics_with(self.scraper)
        return 'leader_election_master_status{name="b8b2488c.x-k8s.io"} 1.0' in text

    async def await_master(self, replica: Replica) -> None:
        """Wait until a replica leads."""

        async def leads() -> bool:
            return await self.is_master(replica)

        await until(leads, *self.replicas, poll=LEADER_POLL)

    async def holder(self) -> str:
        """Return the lease holder."""
        try:
            lease = await self.client.get(LEASES, ObjectKey(NAMESPACE, LEASE))
        except NotFoundError:
            return ""
        return str(lease["spec"].get("holderIdentity") or "")

    @property
    def audit(self) -> Audit:
        """Return the audit events for the managers' requests."""
        return Audit(self.plane.directory)

    def renewals(self, since: int) -> int:
        """Return the number of lease renewals after a position in the audit log."""
        return self.audit.writes(since)[RENEWAL]

    def writes(self, since: int) -> dict[str, int]:
        """Return the number of writes by the managers after a position in the audit log, without lease renewals."""
        return {write: count for write, count in self.audit.writes(since).items() if write != RENEWAL}

    async def rest(self) -> None:
        """Wait until the managers have not written for longer than the time in which events are combined."""
        mark, quiet = self.audit.mark(), time.monotonic()

        async def is_quiet() -> bool:
            nonlocal mark, quiet
            if self.writes(mark):
                mark, quiet = self.audit.mark(), time.monotonic()
            return time.monotonic() > quiet + FOLD + 1

        await until(is_quiet, *self.replicas)


@asynccontextmanager
async def opened(plane: Plane, directory: Path) -> AsyncIterator[InstalledCluster]:
    """Install all objects, and remove them when the context exits."""
    client = Client(KubernetesCluster(plane.kubeconfig).transport("tests"))
    async with Balancer() as balancer:
        await installation.install(client, balancer.port)
        scraper = await installation.token_of(client, installation.SCRAPER)
        world = InstalledCluster(plane, client, balancer, directory, [], scraper)
        try:
            yield world
        finally:
            for replica in world.replicas:
                replica.end()
            await installation.clear(client)
            await client.close()
