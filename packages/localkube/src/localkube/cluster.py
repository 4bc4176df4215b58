"""Defines the public interface of the package, which runs a cluster in one process, without root.

`start` runs all components. `serve` runs only the API server, to which `RunningCluster.work` later adds controllers and
pods, so that webhooks can be added before the first pod is created. Importing this module is cheap, because the API
server and the kubelet are imported when a cluster starts.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localkube.clustersettings import MAX_PODS, Nodes, Settings
from localkube.errors import LocalkubeError, SettingsError
from localkube.hostdevices import Devices, GpuReport
from localkube.statedirectory import DATABASE, KUBECONFIG, make_private, open_private
from localkube.wellknown import DEFAULT_CLASS_NAME, PROVISIONER

if TYPE_CHECKING:
    from kuberuntime.client.client import Client
    from localkube.assembly import Cluster
    from localkube.kubelet.processes.runner import ProcessRunner

__all__ = [
    "DATABASE",
    "DEFAULT_CLASS_NAME",
    "KUBECONFIG",
    "MAX_PODS",
    "PROVISIONER",
    "DamagedDataError",
    "Devices",
    "GpuReport",
    "LocalkubeError",
    "Nodes",
    "RunningCluster",
    "Settings",
    "SettingsError",
    "host_gpus",
    "make_private",
    "open_private",
    "report_gpus",
    "serve",
    "start",
]


class DamagedDataError(LocalkubeError):
    """The database file is damaged and was not changed."""


class RunningCluster:
    """A running API server, with access over HTTPS with the kubeconfig, or in this process without a connection."""

    def __init__(self, settings: Settings, cluster: "Cluster") -> None:
        self._settings = settings
        self._cluster = cluster
        self.notes: tuple[str, ...] = ()
        """The isolation features that pods on this machine do not have, one per line. Set when `work` has started."""

    @property
    def kubeconfig(self) -> Path:
        """Return the file with the address, the certificate and the token. Only its owner can read the file."""
        return self._settings.kubeconfig

    def client(self, user: str = "admin") -> "Client":
        """Return a client in this process, which calls the API server without a connection."""
        return self._cluster.client(user)

    def last_lines(self, uid: str, container: str, lines: int, max_bytes: int) -> list[bytes]:
        """Return the last complete lines of each retained run of a container, oldest first (`max_bytes` bytes per run).

        The logs of a deleted pod are kept for a limited time. This method reads files and may be called in any thread.
        """
        from localkube.kubelet.logfiles import logreader

        pods, former = (self._settings.directory / name / uid for name in ("pods", "former"))
        for directory in (pods / "logs", former, former):  # the logs can be moved concurrently if the pod is deleted
            with suppress(FileNotFoundError):
                if ends := logreader.last_lines_of_runs(directory / container, lines, max_bytes):
                    return ends
        return []

    def wait_reason(self, uid: str) -> tuple[str, str]:
        """Return what the processes in a running pod wait for, and the address of the peer.

        Both are empty if unknown.

        This method reads files for a tenth of a second and may be called in any thread.
        """
        from kuberuntime.objects.meta import UID
        from localkube.kubelet.processes import waitreasons

        wait = waitreasons.wait_reason([pid for kubelet in self._cluster.kubelets for pid in kubelet.pids(UID(uid))])
        return ("", "") if wait is None else (wait.description, wait.peer)

    @asynccontextmanager
    async def work(self, *, kubelet: bool = True, processes: "ProcessRunner | None" = None) -> AsyncIterator[None]:
        """Run the controllers and, with `kubelet`, pods, as local processes unless `processes` is set.

        At the end, pods get SIGTERM and a few seconds to exit. Then all processes are killed.
        """
        from localkube import workloads

        async with workloads.working(self._cluster, processes, kubelet=kubelet) as granted:
            self.notes = granted.missing
            yield

    @asynccontextmanager
    async def run_manager(self, manager: Callable[[], AbstractAsyncContextManager[None]]) -> AsyncIterator[None]:
        """Run the manager of a product until the context exits.

        Each call of `manager` returns a new run, for example after a fault.
        """
        from localkube.faults.componentfaults import RestartableComponent
        from localkube.faults.fault import FaultKind

        part = self._cluster.parts[FaultKind.MANAGER] = RestartableComponent(manager)
        async with part.running():
            yield


def host_gpus(argument: str, nodes: int, visible: str | None) -> Devices:
    """Return the real GPUs for `argument` (`host`, or `host:N` to share each GPU), divided among the nodes.

    `visible` is CUDA_VISIBLE_DEVICES of this process. Raise a `SettingsError` or a `LocalkubeError` that explains the
    fix.
    """
    from localkube.kubelet.accelerators.devicediscovery import discover_devices

    try:
        return discover_devices(argument, nodes, visible)
    except ValueError as error:
        raise SettingsError("gpus", str(error)) from error


def report_gpus(visible: str | None) -> GpuReport | None:
    """Return the state of the GPUs of this machine, or None if none are detected."""
    from localkube.kubelet.accelerators.devicediscovery import report

    return report(visible)


@asynccontextmanager
async def serve(settings: Settings) -> AsyncIterator[RunningCluster]:
    """Run an API server without controllers, nodes and running pods. Raise a `LocalkubeError` if it cannot start."""
    from kuberuntime.clock import SystemClock
    from localkube import assembly

    with _convert_damage_errors():
        async with assembly.serving(settings, SystemClock()) as cluster:
            yield RunningCluster(settings, cluster)


@asynccontextmanager
async def start(
    settings: Settings, *, kubelet: bool = True, processes: "ProcessRunner | None" = None
) -> AsyncIterator[RunningCluster]:
    """Run an API server with controllers and, with `kubelet`, pods, while the context is active."""
    async with serve(settings) as server, server.work(kubelet=kubelet, processes=processes):
        yield server


@contextmanager
def _convert_damage_errors() -> Iterator[None]:
    from localkube.apiserver.storage.storeerrors import DamagedError

    try:
        yield
    except DamagedError as error:
        raise DamagedDataError(str(error)) from error
