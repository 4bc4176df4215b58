"""The parts of a cluster put together: API server, controllers and kubelet, started and ended in one process.

`serving` answers API requests, `working` runs controllers and pods; `cluster.py` is the public face of both.
"""

import asyncio
import errno
import os
from asyncio import TaskGroup
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.eventrecorder import EventRecorder
from localkube import clusteridentity
from localkube.apiserver import builtin
from localkube.apiserver.front import certificate
from localkube.apiserver.front.http import LOOPBACK, HttpServer, ListenError
from localkube.apiserver.front.kubeconfig import Access, write_kubeconfig
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.copies import Copies
from localkube.apiserver.storage.store import MEMORY, Store
from localkube.clusteridentity import Identity
from localkube.clustersettings import Settings
from localkube.controllers.composition import ControllerSettings, run_controllers
from localkube.controllers.nodes.nodes import NodeSettings, node_names
from localkube.kubelet.kubelet import Kubelet
from localkube.kubelet.node import podevents
from localkube.kubelet.processes.runner import Capabilities, ProcessRunner
from localkube.kubelet.processes.settings import KubeletSettings
from localkube.kubelet.sandbox import create_runner
from localkube.statedirectory import DATABASE, make_private

CONTROLLERS: Final = "system:controllers"
KUBELET: Final = "system:kubelet"

GRACE_AT_END: Final = timedelta(seconds=5)
"""What pods get between SIGTERM and SIGKILL when the cluster ends; less where their grace period is shorter."""

NO_PODS: Final = Capabilities(namespaces=False, network="shared", way_out="none")
"""What is granted where no pods run."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster whose API server answers; `nodes` are those of its settings, as values."""

    settings: Settings
    nodes: NodeSettings
    api: ApiServer
    clock: Clock

    def client(self, user: str) -> Client:
        """Return a client of this process, without a connection."""
        return Client(InProcessTransport(self.api, user))


@asynccontextmanager
async def serving(settings: Settings, clock: Clock) -> AsyncIterator[Cluster]:
    """Serve the API on loopback and write the kubeconfig; a store that cannot be opened raises `StoreError`.

    The directory and what lies in it are made private first: `StateDirectoryError` where that cannot be. Invalid nodes
    raise a `SettingsError` before.
    """
    nodes = settings.nodes.parsed()
    make_private(settings.directory)
    own = clusteridentity.load_or_create(settings.directory / "identity.json", clock.now())
    api = ApiServer(
        Store(str(settings.directory / DATABASE) if settings.keep else MEMORY),
        builtin.kinds(),
        clock,
        ServerOptions(max_pods=settings.max_pods),
    )
    try:
        await api.start()
        context = certificate.server_context(own.certificate.encode(), own.key.encode())
        http = HttpServer(api, token=own.token, ssl_context=context)
        port = await _listen(http, settings, own)
        try:
            server = f"https://{LOOPBACK}:{port}"
            write_kubeconfig(settings.kubeconfig, Access(settings.name, server, own.token, own.certificate.encode()))
            async with _copying(settings, api, clock):
                yield Cluster(settings, nodes, api, clock)
        finally:
            await http.stop()
    finally:
        await api.close()


@asynccontextmanager
async def _copying(settings: Settings, api: ApiServer, clock: Clock) -> AsyncIterator[None]:
    """Make copies of the objects from time to time, and at the end."""
    if not settings.keep:
        yield
        return
    store = api.backend.store
    copies = Copies(store, clock)
    task = asyncio.create_task(copies.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        store.flush()
        copies.keep(clock.now())


async def _listen(http: HttpServer, settings: Settings, own: Identity) -> int:
    """Listen where asked, else where clients know the cluster; if that port is taken now, on any other."""
    try:
        port = await http.start(settings.port or own.port)
    except ListenError as error:
        taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
        if settings.port or not own.port or not taken:
            raise
        port = await http.start(0)
    if port != own.port:
        clusteridentity.save(settings.directory / "identity.json", msgspec.structs.replace(own, port=port))
    return port


@asynccontextmanager
async def working(
    cluster: Cluster, processes: ProcessRunner | None = None, *, kubelet: bool = True
) -> AsyncIterator[Capabilities]:
    """Run controllers and pods; yield what this machine granted to pods.

    Pods are processes of this machine, in sandboxes, unless another runner is given. At the end they get SIGTERM and a
    few seconds, and then every process is gone. Without `kubelet` pods are scheduled, and do not start.

    When it yields, no pod of before shows a status of before: who waits for readiness waits for that of now.
    """
    async with _runner(cluster.settings, processes) if kubelet else nullcontext() as granted, TaskGroup() as tasks:
        running = [tasks.create_task(_run_controllers(cluster, ready := asyncio.Event()))]
        if granted:
            running.append(tasks.create_task(_run_kubelet(cluster, *granted, caught_up := asyncio.Event())))
            await caught_up.wait()
        await ready.wait()
        try:
            yield granted[1] if granted else NO_PODS
        finally:
            for task in running:
                task.cancel()


@asynccontextmanager
async def _runner(
    settings: Settings, processes: ProcessRunner | None
) -> AsyncIterator[tuple[ProcessRunner, Capabilities]]:
    runner = processes or create_runner(network=settings.network, state_directory=settings.directory)
    capabilities = await runner.start()
    try:
        yield runner, capabilities
    finally:
        await runner.stop()


async def _run_controllers(cluster: Cluster, ready: asyncio.Event) -> None:
    client = cluster.client(CONTROLLERS)
    settings = ControllerSettings(volumes=cluster.settings.directory / "claims", nodes=cluster.nodes)
    await run_controllers(client, settings, clock=cluster.clock, ready=ready)


async def _run_kubelet(
    cluster: Cluster, runner: ProcessRunner, capabilities: Capabilities, caught_up: asyncio.Event
) -> None:
    client = cluster.client(KUBELET)
    events = EventRecorder(client, podevents.REPORTER, cluster.settings.name, cluster.clock)
    settings = _kubelet_settings(cluster, capabilities)
    kubelet = Kubelet(client, runner, settings, cluster.clock, events)
    cluster.api.attach_node(kubelet)
    async with TaskGroup() as tasks:
        tasks.create_task(events.run())
        tasks.create_task(kubelet.run(caught_up))


def _kubelet_settings(cluster: Cluster, capabilities: Capabilities) -> KubeletSettings:
    settings = cluster.settings
    return KubeletSettings(
        node_names=frozenset(node_names(cluster.nodes)),
        capabilities=capabilities,
        state_directory=settings.directory,
        images=settings.images,
        stub=settings.stub,
        hold_completed=settings.hold_completed,
        quote_failures=settings.quote_failures,
        host_user=os.getuid(),
        host_environment=settings.environment,
        farewell=GRACE_AT_END,
    )
