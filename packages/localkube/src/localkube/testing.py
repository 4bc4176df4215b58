"""Runs a temporary cluster for tests, in memory and in this process. `fixtures.py` provides it for pytest.

In a coroutine: `async with temporary() as server`. Elsewhere: `with in_thread(temporary) as kubeconfig`, which any client
may use. CRDs and webhooks work as on a cluster. Its limitations are documented with the embedded cluster.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

from localkube.cluster import Nodes, RunningCluster, Settings, serve

Work: TypeAlias = Literal["none", "controllers", "modelled pods", "pods"]
"""The components besides the API server: none, controllers and nodes, or also simulated or real pods."""

ONE_NODE = Nodes()


@asynccontextmanager
async def temporary(work: Work = "none", *, nodes: Nodes = ONE_NODE) -> AsyncIterator[RunningCluster]:
    """Run a cluster that releases all resources when the context exits.

    A modelled pod is scheduled, gets an address, becomes ready at once and runs until it is deleted, without a process.
    """
    with TemporaryDirectory(prefix="localkube-") as directory:
        is_modelled = work == "modelled pods"
        settings = Settings(directory=Path(directory), keep=False, nodes=nodes, stub=is_modelled)
        async with serve(settings) as server:
            if work == "none":
                yield server
                return
            from localkube.kubelet.processes.simulatedrunner import SimulatedRunner

            processes = SimulatedRunner() if is_modelled else None
            async with server.work(kubelet=work != "controllers", processes=processes):
                yield server


@contextmanager
def run_in_thread(cluster: Callable[[], AbstractAsyncContextManager[RunningCluster]]) -> Iterator[Path]:
    """Run a cluster in a separate thread, and yield its kubeconfig, which any client can use.

    An error of a cluster that does not start, or ends early, is raised here.
    """
    started: Future[tuple[Path, Callable[[], object]]] = Future()

    async def serve() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        async with cluster() as server:
            started.set_result((server.kubeconfig, partial(loop.call_soon_threadsafe, ended.set)))
            await ended.wait()

    with ThreadPoolExecutor(1, "localkube") as threads:
        future = threads.submit(lambda: asyncio.run(serve()))
        both: tuple[Future[Any], ...] = (started, future)
        wait(both, return_when=FIRST_COMPLETED)
        if not started.done():
            raise RuntimeError("the cluster did not start") from future.exception()
        kubeconfig, end = started.result()
        try:
            yield kubeconfig
        finally:
            with suppress(RuntimeError):  # the loop is closed, because the cluster stopped early
                end()
            future.result()
