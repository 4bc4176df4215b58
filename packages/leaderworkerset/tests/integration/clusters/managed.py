"""Runs the LeaderWorkerSet manager in the test process, with its CRDs.

With `POD_ADMISSION=Policy` in the environment, kube-apiserver admits pods by a policy; the embedded cluster serves none.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

from testkit.clusters.cluster import ClusterBackend
from testkit.clusters.kubernetes import KubernetesCluster, create_nodes
from testkit.clusters.opencontexts import OpenContext
from testkit.clusters.recording import RecordingTransport
from tests.integration.clusters.virtual import VirtualCluster

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import names
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager import lwsmanager
from leaderworkerset.manager.config.configuration import PodAdmission

BY_POLICY = os.environ.get("POD_ADMISSION") == PodAdmission.POLICY


async def set_up(cluster: KubernetesCluster) -> None:
    """Create the LeaderWorkerSet CRD, and the nodes that kwok simulates."""
    client = Client(cluster.transport("setup"))
    await client.apply(CUSTOM_RESOURCE_DEFINITIONS, leaderworkerset_crd(), manager=lwsmanager.INSTALLER)
    await create_nodes(client)
    served = Informer(client, LEADERWORKERSETS)
    following = asyncio.create_task(served.run())
    await served.wait_synced()
    following.cancel()
    await asyncio.wait([following])
    await client.close()


@dataclass
class LocalManager:
    """Implements `Manager` with the manager of `lws up` in this process. The webhooks are not stopped."""

    recording: RecordingTransport
    kinds: Registry
    clock: Clock
    _controllers: OpenContext[None]

    async def stop(self) -> None:
        """Stop the controllers gracefully."""
        await self._controllers.leave()

    async def kill(self) -> None:
        """Stop the controllers immediately, without waiting for their current work."""
        await self._controllers.kill()

    async def start(self) -> None:
        """Start the controllers, and wait until their caches are filled."""
        self._controllers = OpenContext(lwsmanager.controllers(Client(self.recording), self.clock, kinds=self.kinds))
        await self._controllers.value()

    def check(self) -> None:
        """Raise the error that stopped the controllers, if there is one."""
        self._controllers.check()


@asynccontextmanager
async def managed(cluster: ClusterBackend) -> AsyncIterator[LocalManager]:
    """Run the webhooks and controllers of LeaderWorkerSets on a cluster."""
    recording = RecordingTransport(cluster.transport("lws"))
    client = Client(recording)
    by_policy = BY_POLICY and isinstance(cluster, KubernetesCluster)
    kinds = managed_kinds(configured={names.POD_ADMISSION: True}) if by_policy else MANAGED
    webhooks = lwsmanager.webhooks(client, cluster.clock, kinds=kinds, evaluates_cel=by_policy)
    async with nullcontext() if isinstance(cluster, VirtualCluster) else webhooks:
        controllers = OpenContext(lwsmanager.controllers(client, cluster.clock, kinds=kinds))
        await controllers.value()
        manager = LocalManager(recording, kinds, cluster.clock, controllers)
        try:
            yield manager
        finally:
            await manager.stop()
            await asyncio.shield(client.close())
