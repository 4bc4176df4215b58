"""Runs a manager with the command, arguments, file, account and permissions of its Deployment.

On the embedded cluster, which knows no rights and reaches no services, webhooks are called at a URL.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from testkit.clusters.cluster import ClusterBackend
from testkit.clusters.embedded import EmbeddedCluster
from tests.kubernetes.manager import installation
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from leaderworkerset.api.metadata import LEASE
from leaderworkerset.install.installsettings import NAMESPACE
from leaderworkerset.install.objects import build_namespace
from leaderworkerset.kinds.managedkinds import managed_kinds
from leaderworkerset.manager.config.configurationfile import opted_in
from leaderworkerset.webhooks import certificates, configurations
from leaderworkerset.webhooks.configurations import SECRET_NAME, SERVICE_NAME

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True)
class DeployedManager:
    """Implements the `Manager` interface of the clusters with a process."""

    replica: Replica

    async def stop(self) -> None:
        """Stop the manager, and wait until it has exited."""
        await self.replica.stop()

    async def kill(self) -> None:
        """Kill the manager."""
        self.replica.kill()

    async def start(self) -> None:
        """Start the manager, and wait until it reports that it is ready."""
        self.replica.start()
        await self.replica.await_ready()

    def check(self) -> None:
        """Raise an error if the manager has exited."""
        self.replica.check()


@asynccontextmanager
async def deployed(cluster: ClusterBackend, replica: Replica) -> AsyncIterator[DeployedManager]:
    """Install the objects for a manager with this replica's configuration, and run the manager.

    Finally remove its webhooks.
    """
    client = Client(cluster.transport("setup"))
    prepare = _prepare_embedded if isinstance(cluster, EmbeddedCluster) else _install
    await prepare(client, cluster, replica)
    manager = DeployedManager(replica)
    try:
        await manager.start()
        yield manager
        await manager.stop()
    finally:
        replica.end()
        await installation.clear(client)
        await client.close()


async def _install(client: Client, cluster: ClusterBackend, replica: Replica) -> None:
    chosen = replica.chosen()
    internal = chosen.internal_cert_management
    await installation.install(
        client,
        replica.webhooks,
        managed_kinds(chosen.gang_provider, configured=opted_in(chosen)),
        "internal" if internal.enable else "cert-manager",
        {
            SERVICE_NAME: internal.webhook_service_name,
            SECRET_NAME: internal.webhook_secret_name,
            LEASE: chosen.leader_election.resource_name,
        },
    )
    if not internal.enable:
        authority = certificates.create_authority(datetime.now(UTC))
        host = f"{internal.webhook_service_name}.{NAMESPACE}.svc"
        installation.write_certificate(Path(chosen.webhook.cert_dir), authority, host)
        await installation.trust(client, authority.certificate)
    await installation.write_kubeconfig(client, cluster.kubeconfig, replica.kubeconfig)


async def _prepare_embedded(client: Client, cluster: ClusterBackend, replica: Replica) -> None:
    replica.kubeconfig = cluster.kubeconfig
    directory = replica.directory / "certs"
    replica.configuration |= {"internalCertManagement": {"enable": False}, "webhook": {"certDir": str(directory)}}
    authority = certificates.create_authority(datetime.now(UTC))
    installation.write_certificate(directory, authority, LOOPBACK)
    kinds = managed_kinds(replica.chosen().gang_provider)
    at = configurations.at_url(f"https://{LOOPBACK}:{replica.webhooks}", authority.certificate)
    for resource, obj in (
        (NAMESPACES, build_namespace(NAMESPACE)),
        *((CUSTOM_RESOURCE_DEFINITIONS, one) for one in kinds.definitions()),
        *configurations.build_configurations(kinds.webhooks, at),
    ):
        await client.apply(resource, obj, manager="tests")
