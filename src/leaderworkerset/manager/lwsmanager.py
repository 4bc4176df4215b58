"""The LeaderWorkerSet part of a cluster: CRD, admission webhooks and controllers, over a client of its API server."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.controllers.manager import run_controllers
from leaderworkerset.webhooks import certificates, configurations
from leaderworkerset.webhooks.server import WebhookServer

INSTALLER: Final = "lws-install"
"""The field manager of what is installed: CRD and webhook configurations."""

LOOPBACK: Final = "127.0.0.1"


@asynccontextmanager
async def webhooks(client: Client, clock: Clock, definition: JSONObject | None = None) -> AsyncIterator[None]:
    """Serve admission on a loopback port, and tell the API server of it and of the kind LeaderWorkerSet.

    Without a `definition` the kind is defined without descriptions.
    """
    authority = certificates.create_authority(clock.now())
    certificate = certificates.issue(authority, [LOOPBACK, "localhost"], clock.now())
    async with WebhookServer(LOOPBACK, 0, certificate.chain) as server:
        at = configurations.at_url(server.url, authority.certificate)
        for resource, obj in (
            (CUSTOM_RESOURCE_DEFINITIONS, definition or leaderworkerset_crd()),
            (MUTATING_WEBHOOK_CONFIGURATIONS, configurations.mutating_configuration(at)),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, configurations.validating_configuration(at)),
        ):
            await client.apply(resource, obj, manager=INSTALLER)
        yield


@asynccontextmanager
async def controllers(client: Client, clock: Clock) -> AsyncIterator[None]:
    """Run the controllers while the context is entered."""
    synced = asyncio.Event()
    instance = f"leaderworkerset-{socket.gethostname()}"
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run_controllers(client, clock=clock, instance=instance, synced=synced))
        await synced.wait()
        try:
            yield
        finally:
            running.cancel()
