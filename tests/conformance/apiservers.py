"""The two API servers that must agree: the embedded one in this process, and kube-apiserver with nothing but its etcd.

No controller runs beside either, so that whatever changes was changed by the request that is looked at.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

import yaml
from tests.controlplane import process
from tests.controlplane.process import LOOPBACK, Plane

from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import builtin
from leaderworkerset.embedded.apiserver.inprocess import InProcessTransport
from leaderworkerset.embedded.apiserver.server import ApiServer
from leaderworkerset.embedded.apiserver.store import MEMORY, Store
from leaderworkerset.kube.access import TLS, Access
from leaderworkerset.kube.clock import SystemClock
from leaderworkerset.kube.credentials import Credentials
from leaderworkerset.kube.http import HTTPTransport
from leaderworkerset.kube.transport import Transport

ROOT = Path(__file__).parents[2]
USER_AGENT = "conformance/1"
ADMINISTRATOR = "admin"


@dataclass(frozen=True)
class Token:
    """A bearer token that never changes."""

    value: str

    async def get(self) -> Credentials:
        return Credentials(token=self.value)

    async def renew(self, refused: Credentials) -> bool:
        return False


def transport_to(plane: Plane) -> HTTPTransport:
    """Return a transport to a control plane, as its administrator."""
    access = Access(plane.server, Token(plane.token), TLS(authority=plane.authority.read_bytes()))
    return HTTPTransport(access, user_agent=USER_AGENT)


@contextmanager
def bare_plane(assets: Path, directory: Path) -> Iterator[Plane]:
    """Run etcd and kube-apiserver until the context is left."""
    ports, token = process.free_ports(3), token_urlsafe(24)
    process.write_service_account_key(directory)
    (directory / "tokens.csv").write_text(f'{token},{ADMINISTRATOR},admin,"system:masters"\n')
    server, authority = f"https://{LOOPBACK}:{ports[2]}", directory / "pki" / "apiserver.crt"
    plane = Plane(directory, assets, server, token, authority, {})
    try:
        process.start(plane, "etcd", process.etcd_flags(directory, ports))
        process.start(plane, "kube-apiserver", process.apiserver_flags(directory, ports))
        process.await_ready(plane)
        yield plane
    finally:
        for one in reversed(plane.processes.values()):
            process.stop(one)


@asynccontextmanager
async def embedded() -> AsyncIterator[Transport]:
    """Run an embedded API server in this process."""
    server = ApiServer(Store(MEMORY), builtin.kinds(), SystemClock())
    await server.start()
    try:
        yield InProcessTransport(server, ADMINISTRATOR)
    finally:
        await server.close()


def definition() -> JSONObject:
    """Return the CustomResourceDefinition of LeaderWorkerSets."""
    loaded: JSONObject = yaml.load((ROOT / "deploy/crds/leaderworkersets.yaml").read_text(), yaml.CSafeLoader)
    return loaded


@dataclass(frozen=True)
class Servers:
    """Both servers, and the loop that speaks to them."""

    runner: asyncio.Runner
    embedded: Transport
    real: Transport
