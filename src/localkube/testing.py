"""A temporary Kubernetes for tests, in memory and in this process; `fixtures.py` has the same for pytest.

In a coroutine: `async with temporary() as server`. Elsewhere: `with in_thread(temporary) as kubeconfig`, which any client
may use. CRDs and webhooks work as on a cluster. Its limitations are documented with the embedded cluster.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias

from localkube.cluster import Nodes, RunningCluster, Settings, serve

Work: TypeAlias = Literal["none", "controllers", "modelled pods", "pods"]
"""What runs beside the API server: nothing; controllers and nodes; or also pods, modelled or as processes."""

ONE_NODE = Nodes()


@asynccontextmanager
async def temporary(work: Work = "none", *, nodes: Nodes = ONE_NODE) -> AsyncIterator[RunningCluster]:
    """Run a cluster that leaves nothing behind.

    A modelled pod is scheduled, gets an address, becomes ready at once and runs until it is deleted, without a process.
    """
    with TemporaryDirectory(prefix="localkube-") as directory:
        is_modelled = work == "modelled pods"
        settings = Settings(directory=Path(directory), keep=False, nodes=nodes, stub=is_modelled)
        async with serve(settings) as server:
            if work == "none":
                yield server
                return
            from localkube.kubelet.processes.model import ModelRunner

            processes = ModelRunner() if is_modelled else None
            async with server.work(kubelet=work != "controllers", processes=processes):
                yield server


@contextmanager
def in_thread(cluster: Callable[[], AbstractAsyncContextManager[RunningCluster]]) -> Iterator[Path]:
    """Run a cluster in its own thread; yield the kubeconfig, which any client can use."""
    thread = _ClusterThread(cluster)
    thread.start()
    kubeconfig = thread.kubeconfig()
    try:
        yield kubeconfig
    finally:
        thread.stop()


class _ClusterThread(threading.Thread):
    def __init__(self, cluster: Callable[[], AbstractAsyncContextManager[RunningCluster]]) -> None:
        super().__init__(name="localkube", daemon=True)
        self._cluster = cluster
        self._is_decided = threading.Event()
        self._kubeconfig: Path | None = None
        self._error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()

    def run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error = error
        finally:
            self._is_decided.set()

    async def _serve(self) -> None:
        async with self._cluster() as server:
            self._kubeconfig = server.kubeconfig
            self._is_decided.set()
            await self._ended.wait()

    def kubeconfig(self) -> Path:
        """Wait for the cluster and return its kubeconfig; raise the error if it does not start."""
        self._is_decided.wait()
        if self._kubeconfig is None:
            self.join()
            raise RuntimeError("the cluster did not start") from self._error
        return self._kubeconfig

    def stop(self) -> None:
        """End the cluster and its thread; raise the error that ended it early."""
        if self.is_alive():
            self._loop.call_soon_threadsafe(self._ended.set)
        self.join()
        if self._error is not None:
            raise self._error
