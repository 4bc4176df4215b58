"""Runs parts of test clusters: an in-memory API server and the controllers of `localkube`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from kuberuntime import timeouts
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Transport
from kuberuntime.clock import Clock
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.store import Store
from localkube.controllers.controllermanager import ControllerSettings, run_controllers

START: Final = 60.0
"""The time in seconds in which controllers must become ready."""


@asynccontextmanager
async def serve_api(
    clock: Clock, store: Store | None = None, *, random: Random | None = None, max_pods: int | None = None
) -> AsyncIterator[ApiServer]:
    """Serve the built-in kinds within the `with` block, from the given store or an in-memory store."""
    server = ApiServer(store or Store(), builtin.kinds(), clock, ServerOptions(random=random, max_pods=max_pods))
    try:
        await server.start()
        yield server
    finally:
        await server.close()


def same_transport(transport: Transport) -> Transport:
    """Return the transport itself."""
    return transport


@asynccontextmanager
async def start_controllers(
    server: ApiServer,
    settings: ControllerSettings,
    clock: Clock,
    through: Callable[[Transport], Transport] = same_transport,
) -> AsyncIterator[None]:
    """Run the controllers for the duration of the `with` block, which starts when they are ready.

    Their requests go `through` another transport.
    """
    client = Client(through(InProcessTransport(server, "system:kube-controller-manager")))
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        controllers = group.create_task(run_controllers(client, settings, clock=clock, ready=ready))
        async with timeouts.within(START):
            await ready.wait()
        yield
        controllers.cancel()
