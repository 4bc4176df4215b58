"""Runs an API server of the embedded cluster without a network, for tests that need no other components."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

LIMIT: Final = 30.0
"""The timeout in seconds for a test that uses this API server."""


@asynccontextmanager
async def api() -> AsyncIterator[Client]:
    """Serve the Kubernetes kinds for the duration of the `with` block, and yield a client."""
    server = ApiServer(Store(), builtin.kinds(), SystemClock())
    await server.start()
    try:
        async with asyncio.timeout(LIMIT):
            yield Client(InProcessTransport(server, "test"))
    finally:
        await server.close()
