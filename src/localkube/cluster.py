"""The public face of the package: from settings to a running cluster, in one process, without root.

`start` runs everything; `serve` runs the API server alone, to which `RunningCluster.work` adds controllers and pods later, so
that whoever adds webhooks can do so before the first pod is made. Importing this module is cheap: the API server and
the kubelet are imported when a cluster is started.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localkube.errors import LocalkubeError, SettingsError
from localkube.limits import MAX_PODS
from localkube.statedirectory import DATABASE, KUBECONFIG, make_private, open_private
from localkube.wellknown import DEFAULT_CLASS_NAME, PROVISIONER

if TYPE_CHECKING:
    from kuberuntime.client.client import Client
    from localkube.assembly import Cluster, ClusterSettings
    from localkube.controllers.nodes.nodes import NodeSettings
    from localkube.kubelet.processes.runner import ProcessRunner

__all__ = [
    "DATABASE",
    "DEFAULT_CLASS_NAME",
    "KUBECONFIG",
    "MAX_PODS",
    "PROVISIONER",
    "DamagedDataError",
    "LocalkubeError",
    "Nodes",
    "RunningCluster",
    "Settings",
    "SettingsError",
    "make_private",
    "newest_copy",
    "open_private",
    "restore",
    "serve",
    "start",
]


class DamagedDataError(LocalkubeError):
    """The file with the objects is damaged, and was left as it is: `restore` puts a copy in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The simulated nodes, in the words of a user: all of them are this machine.

    `labels` are KEY=VALUE and `taints` KEY=VALUE:EFFECT or KEY:EFFECT; in a value `{i}` is the node's number, and
    integer arithmetic on it works: `rack=r{i//2}`. `capacity` is RESOURCE=AMOUNT, several joined by commas. `also` are
    further nodes of other sorts, whose numbers follow.
    """

    count: int = 1
    labels: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    capacity: tuple[str, ...] = ()
    gpus: int = 0
    also: tuple["Nodes", ...] = ()

    def check(self) -> None:
        """Raise a `SettingsError` that names the first setting that is invalid for one of the nodes."""
        self.parsed()

    def parsed(self) -> "NodeSettings":
        """Return the same as values."""
        from dataclasses import replace

        from localkube.controllers.nodes.labeltemplate import parse_label
        from localkube.controllers.nodes.nodes import GPU, NodeSettings
        from localkube.controllers.nodes.nodewords import parse_capacity, parse_taint

        nodes = NodeSettings(count=self.count, also=tuple(one.parsed() for one in self.also))
        with _blaming("labels"):
            nodes = replace(nodes, labels=tuple(map(parse_label, self.labels)))
            nodes.check()
        with _blaming("taints"):
            nodes = replace(nodes, taints=tuple(map(parse_taint, self.taints)))
            nodes.check()
        with _blaming("capacity"):
            nodes = replace(nodes, capacity=parse_capacity(self.capacity))
        if not self.gpus:
            return nodes
        if GPU in nodes.capacity:
            raise SettingsError("gpus", f"{GPU} is in the capacity too; leave one out")
        return nodes.with_gpus(self.gpus)


@contextmanager
def _blaming(setting: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise SettingsError(setting, str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a cluster is like. Everything it keeps lies in `directory`; without `keep` its objects live in memory.

    `port` 0 means: where it listened last time, else any free port. `images` maps the name of an image to a directory
    that stands for it. With `stub`, containers that cannot run here are replaced by a server that answers on their
    ports. With `hold_completed`, containers that ended with 0 are not restarted. With
    `quote_failures`, one that failed without a termination message gets its last log lines as message. `environment` is
    what containers inherit of this process.
    """

    directory: Path
    name: str = "localkube"
    keep: bool = True
    port: int = 0
    nodes: Nodes = field(default_factory=Nodes)
    network: Literal["isolated", "shared"] = "isolated"
    images: Mapping[str, Path] = field(default_factory=dict)
    stub: bool = False
    hold_completed: bool = False
    quote_failures: bool = False
    max_pods: int = MAX_PODS
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def kubeconfig(self) -> Path:
        """Return the file that lets clients in; it is written when the API server answers."""
        return self.directory / KUBECONFIG

    def parsed(self) -> "ClusterSettings":
        """Return the same as values for the parts of the cluster; an invalid one raises a `SettingsError`."""
        from localkube.assembly import ClusterSettings

        return ClusterSettings(
            name=self.name,
            directory=self.directory,
            keep=self.keep,
            port=self.port,
            nodes=self.nodes.parsed(),
            network=self.network,
            images=self.images,
            stub=self.stub,
            hold_completed=self.hold_completed,
            quote_failures=self.quote_failures,
            max_pods=self.max_pods,
            environment=self.environment,
        )


class RunningCluster:
    """An API server that answers: by HTTPS for whoever has the kubeconfig, and without a connection in this process."""

    def __init__(self, settings: Settings, cluster: "Cluster") -> None:
        self._settings = settings
        self._cluster = cluster
        self.notes: tuple[str, ...] = ()
        """What this machine did not grant to pods, a line each; known once `work` has begun."""

    @property
    def kubeconfig(self) -> Path:
        """Return the file with address, certificate and token; only its owner can read it."""
        return self._settings.kubeconfig

    def client(self, user: str = "admin") -> "Client":
        """Return a client of this process, which calls the API server without a connection."""
        return self._cluster.client(user)

    @asynccontextmanager
    async def work(self, *, kubelet: bool = True, processes: "ProcessRunner | None" = None) -> AsyncIterator[None]:
        """Run the controllers and, with `kubelet`, pods: as processes of this machine unless another runner is given.

        At the end pods get SIGTERM and a few seconds, and then every process is gone.
        """
        from localkube import assembly

        async with assembly.working(self._cluster, processes, kubelet=kubelet) as granted:
            self.notes = granted.lost
            yield


@asynccontextmanager
async def serve(settings: Settings) -> AsyncIterator[RunningCluster]:
    """Run an API server: no controllers, no nodes, no pods that start. What prevents it raises a `LocalkubeError`."""
    from kuberuntime.clock import SystemClock
    from localkube import assembly

    with _damage_named():
        async with assembly.serving(settings.parsed(), SystemClock()) as cluster:
            yield RunningCluster(settings, cluster)


@asynccontextmanager
async def start(
    settings: Settings, *, kubelet: bool = True, processes: "ProcessRunner | None" = None
) -> AsyncIterator[RunningCluster]:
    """Run an API server with controllers and, with `kubelet`, pods; all of it ends with the context."""
    async with serve(settings) as server, server.work(kubelet=kubelet, processes=processes):
        yield server


@contextmanager
def _damage_named() -> Iterator[None]:
    from localkube.apiserver.storage.errors import DamagedError

    try:
        yield
    except DamagedError as error:
        raise DamagedDataError(str(error)) from error


def newest_copy(directory: Path, now: datetime) -> str:
    """Describe the newest copy of a cluster's objects, by name and age; empty where there is none."""
    from localkube.apiserver.storage import copies

    found = copies.find(directory / DATABASE)
    return found[0].describe(now) if found else ""


def restore(directory: Path, now: datetime) -> tuple[str, Path | None]:
    """Put the newest good copy in the place of a cluster's objects; return what it is, and where the file of before is."""
    from localkube.apiserver.storage import copies

    restored = copies.restore(directory / DATABASE, now)
    return restored.source, restored.aside
