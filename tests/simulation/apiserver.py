"""The API server that clusters of tests are put together on: in memory, and closed whatever happens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from kuberuntime.clock import Clock
from localkube.apiserver import builtin
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.store import Store


@asynccontextmanager
async def serving(
    clock: Clock, store: Store | None = None, *, random: Random | None = None, max_pods: int | None = None
) -> AsyncIterator[ApiServer]:
    """Serve the built-in kinds in the body, from a store in memory where none is given."""
    server = ApiServer(store or Store(), builtin.kinds(), clock, ServerOptions(random=random, max_pods=max_pods))
    try:
        await server.start()
        yield server
    finally:
        await server.close()
