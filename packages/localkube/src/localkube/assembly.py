"""Assembles the API server of a cluster from a store, certificates, a port and a kubeconfig.

`workloads.py` runs controllers and pods on it. `cluster.py` is the public interface of both.
"""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from localkube import certificate, clusteridentity
from localkube.apiserver import builtin
from localkube.apiserver.frontend.http import LOOPBACK, HttpServer, ListenError
from localkube.apiserver.frontend.kubeconfig import Access, write_kubeconfig
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.store import MEMORY, Store
from localkube.clusteridentity import Identity
from localkube.clustersettings import Settings
from localkube.faults.componentfaults import Component
from localkube.faults.fault import FaultKind
from localkube.statedirectory import DATABASE, make_private

if TYPE_CHECKING:
    from localkube.controllers.nodes.nodes import NodeSettings
    from localkube.kubelet.kubelet import Kubelet


class Cluster(msgspec.Struct, frozen=True):
    """A cluster whose API server is running. `nodes` are the parsed node settings.

    `parts` can be made unavailable for a time (`faults/`). Code that runs an additional part on this cluster adds it.
    """

    settings: Settings
    nodes: "NodeSettings"
    api: ApiServer
    clock: Clock
    parts: dict[FaultKind, Component] = msgspec.field(default_factory=dict)
    kubelets: list["Kubelet"] = msgspec.field(default_factory=list)
    """The kubelet, if it is running."""

    def client(self, user: str) -> Client:
        """Return a client in this process, which does not need a connection."""
        return Client(InProcessTransport(self.api, user))


@asynccontextmanager
async def serving(settings: Settings, clock: Clock) -> AsyncIterator[Cluster]:
    """Serve the API on loopback and write the kubeconfig. Raise `StoreError` if the store cannot be opened.

    Invalid nodes raise a `SettingsError` first. Then the directory and its files are made private. If this fails, a
    `StateDirectoryError` is raised.
    """
    nodes = settings.nodes.parse()
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
            parts: dict[FaultKind, Component] = {FaultKind.APISERVER: api, FaultKind.WEBHOOKS: api.backend.admission}
            yield Cluster(settings, nodes, api, clock, parts)
        finally:
            await http.stop()
    finally:
        await api.close()


async def _listen(http: HttpServer, settings: Settings, own: Identity) -> int:
    """Listen on the port in the settings, or on the last used port. If it is in use, listen on any free port."""
    try:
        port = await http.start(settings.port or own.port)
    except ListenError as error:
        is_in_use = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
        if settings.port or not own.port or not is_in_use:
            raise
        port = await http.start(0)
    if port != own.port:
        clusteridentity.save(settings.directory / "identity.json", msgspec.structs.replace(own, port=port))
    return port
