"""Runs the two compared API servers: the embedded server in this process, and kube-apiserver with etcd.

No controller runs next to them, so that each change was made by the request itself.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from testkit.apiserver import serve_api
from tests.controlplane.process import Plane

from kuberuntime.access.access import TLS, Access
from kuberuntime.access.credentials import Credentials
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.transport import Transport
from kuberuntime.clock import SystemClock
from localkube.apiserver.inprocess import InProcessTransport

USER_AGENT = "conformance/1"
ADMINISTRATOR = "admin"


@dataclass(frozen=True)
class Token:
    """A constant bearer token."""

    value: str

    async def get(self) -> Credentials:
        return Credentials(token=self.value)

    async def renew(self, refused: Credentials) -> bool:
        return False


def transport_to(plane: Plane) -> HTTPTransport:
    """Return a transport to a control plane with administrator permissions."""
    access = Access(plane.server, Token(plane.token), TLS(authority=plane.authority.read_bytes()))
    return HTTPTransport(access, user_agent=USER_AGENT)


@asynccontextmanager
async def embedded() -> AsyncIterator[Transport]:
    """Run an embedded API server in this process."""
    async with serve_api(SystemClock()) as server:
        yield InProcessTransport(server, ADMINISTRATOR)


@dataclass(frozen=True)
class Servers:
    """The embedded server, kube-apiserver if it runs, and the event loop of both servers."""

    runner: asyncio.Runner
    embedded: Transport
    real: Transport | None
