"""Runs an installed manager as a process behind its Service, and a client whose writes the manager admits."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testkit.clusters.kubernetes import KubernetesCluster
from tests.integration.clusters import objects
from tests.kubernetes.install.conftest import Administrator
from tests.kubernetes.manager.balancer import Balancer
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.errors import KubeError
from leaderworkerset.api.metadata import MANAGER
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.install.installsettings import NAMESPACE
from leaderworkerset.webhooks.configurations import SERVICE_NAME

IN = ("-n", NAMESPACE)
PORT = 443
EVERY = 0.2
"""The interval between two writes, in seconds."""


def may_listen() -> bool:
    """Return whether the current user may listen on the Service port."""
    lowest = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()
    return os.geteuid() == 0 or float(lowest) <= PORT


def kubeconfig_of(administrator: Administrator, account: str) -> Path:
    """Write a kubeconfig with the permissions of a service account."""
    config = json.loads(administrator.plane.kubeconfig.read_text())
    token = administrator.kubectl("create", "token", account, *IN).strip()
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    path = administrator.directory / f"{account}.kubeconfig"
    path.write_text(json.dumps(config))
    return path


class Writes:
    """Creates LeaderWorkerSets one after the other. Records the number of admitted objects, and the rejections."""

    def __init__(self) -> None:
        self.admitted = 0
        self.refused: list[str] = []
        self._ended = threading.Event()

    def end(self) -> None:
        """Wait for the last response."""
        self._ended.set()

    async def go_on(self, client: Client) -> None:
        """Send dry-run writes until the client is stopped."""
        lws = objects.lws("written") | {"metadata": {"name": "written", "namespace": "default"}}
        while not self._ended.is_set():
            try:
                await client.create(LEADERWORKERSETS, lws, dry_run=True)
                self.admitted += 1
            except KubeError as error:
                self.refused.append(str(error))
            await asyncio.sleep(EVERY)


@contextmanager
def served(administrator: Administrator, name: str) -> Iterator[Writes]:
    """Run a manager with the permissions and the certificate of the installation while writes are sent.

    No request may be forbidden.
    """
    address = administrator.there(f"service/{SERVICE_NAME}", *IN)["spec"]["clusterIP"]
    replica = Replica(administrator.directory, name, kubeconfig_of(administrator, MANAGER))
    replica.start()
    writes = Writes()

    async def serve() -> None:
        client = Client(KubernetesCluster(administrator.plane.kubeconfig).transport("writer"))
        async with Balancer(address, PORT) as balancer:
            balancer.backends = [replica.webhooks]
            await writes.go_on(client)
        await client.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    try:
        asyncio.run(replica.await_ready())
        thread.start()
        yield writes
        writes.end()
        thread.join()
        asyncio.run(replica.stop())
    finally:
        writes.end()
        replica.end()
    assert "forbidden" not in replica.log.read_text()
