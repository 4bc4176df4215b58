"""The manager beside a cluster of one machine: definitions, webhooks and controllers, over a client of its API server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from kuberuntime.serving.serving import Address
from leaderworkerset.kinds.manager import MANAGED
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.webhooks import certificates, configurations
from leaderworkerset.webhooks.server import WebhookServer

INSTALLER: Final = "lws-install"
"""The field manager of what is installed: definitions and webhook configurations."""

LOOPBACK: Final = "127.0.0.1"


@asynccontextmanager
async def webhooks(
    client: Client,
    clock: Clock,
    definitions: Sequence[JSONObject] | None = None,
    *,
    kinds: Registry = MANAGED,
) -> AsyncIterator[None]:
    """Serve admission on a loopback port, and install the kinds and their webhooks on the API server.

    Without `definitions` the kinds are defined without descriptions.
    """
    authority = certificates.create_authority(clock.now())
    certificate = certificates.issue(authority, [LOOPBACK, "localhost"], clock.now())
    async with WebhookServer(Address(LOOPBACK, 0), certificate.chain, kinds.decisions) as server:
        at = configurations.at_url(server.url, authority.certificate)
        for resource, obj in (
            *((CUSTOM_RESOURCE_DEFINITIONS, one) for one in definitions or kinds.definitions()),
            *configurations.build_configurations(kinds.webhooks, at),
        ):
            await client.apply(resource, obj, manager=INSTALLER)
        yield


@asynccontextmanager
async def controllers(client: Client, clock: Clock, *, kinds: Registry = MANAGED) -> AsyncIterator[None]:
    """Run the controllers while the context is entered."""
    instance = f"leaderworkerset-{socket.gethostname()}"
    running = Controllers(kinds.controllers, client, clock=clock, instance=instance)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(running.run())
        await running.synced.wait()
        try:
            yield
        finally:
            task.cancel()
