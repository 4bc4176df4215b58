"""Runs the manager of a local cluster, with CRDs, webhooks, controllers, and a client for its API server."""

import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS
from kuberuntime.serving.bindaddresses import Address
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.manager.webhookserving import Webhooks
from leaderworkerset.webhooks import certificates, configurations
from leaderworkerset.webhooks.server import WebhookServer

INSTALLER: Final = "lws-install"
"""The field manager of installed CRDs and webhook configurations."""

LOOPBACK: Final = "127.0.0.1"


@asynccontextmanager
async def webhooks(
    client: Client,
    clock: Clock,
    definitions: Sequence[JSONObject] | None = None,
    *,
    kinds: Registry = MANAGED,
    evaluates_cel: bool = False,
) -> AsyncIterator[None]:
    """Serve admission on a loopback port, and install the CRDs and webhooks in the API server.

    Without `definitions` the kinds are installed without descriptions. `evaluates_cel` is for tests on a real API server.
    """
    authority = certificates.create_authority(clock.now())
    validity = certificates.AUTHORITY_VALIDITY  # valid for the lifetime of the cluster, because it is not renewed
    certificate = certificates.issue(authority, [LOOPBACK, "localhost"], clock.now(), validity=validity)
    address = Address(LOOPBACK, 0)
    part = Webhooks(
        address,
        lambda chain: WebhookServer(address, chain, kinds.decisions),
        lambda use: use(certificate.chain),
    )
    async with part.running():
        server = await part.wait_for_server()
        at = configurations.at_url(server.url, authority.certificate)
        for resource, obj in (
            *((CUSTOM_RESOURCE_DEFINITIONS, definition) for definition in definitions or kinds.definitions()),
            *configurations.build_configurations(kinds.webhooks, at, evaluates_cel=evaluates_cel),
        ):
            await client.apply(resource, obj, manager=INSTALLER)
        yield


def controllers(client: Client, clock: Clock, *, kinds: Registry = MANAGED) -> AbstractAsyncContextManager[None]:
    """Run the controllers while the context is active. The context is entered after their caches have synced."""
    instance = f"leaderworkerset-{socket.gethostname()}"
    return Controllers(kinds, client, clock=clock, instance=instance).running()
