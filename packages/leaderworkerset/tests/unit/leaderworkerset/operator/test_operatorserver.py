"""Tests the operator server, with public probes, and metrics and build information for authorized users."""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, HttpVersion11, TCPConnector
from testkit.fakes import ScriptedTransport, respond

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Response
from kuberuntime.clock import SystemClock
from kuberuntime.serving.delegatedauth import Authorizer
from kuberuntime.serving.metrics import Metrics
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager import buildinfo
from leaderworkerset.operator import operatorprocess
from leaderworkerset.operator.operand import OperatorPlace
from leaderworkerset.operator.operatorprocess import OperatorProcessSettings, OperatorServer, registry
from leaderworkerset.operator.verbosity import Verbosity

KNOWN = respond(201, {"status": {"authenticated": True, "user": {"username": "scraper"}}})
ALLOWED = respond(201, {"status": {"allowed": True}})
DENIED = respond(201, {"status": {"allowed": False}})


class Leading:
    """A component that becomes ready on request."""

    def __init__(self, *, is_ready: bool) -> None:
        self.is_ready = is_ready

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    async def drain(self) -> None:
        """Return immediately."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(
    path: str, *script: Response, is_ready: bool = True, headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Return an operator's HTTPS response if its API server returns these responses to reviews."""
    transport, clock, metrics = ScriptedTransport(*script), SystemClock(), Metrics()
    kinds = registry(OperatorPlace(namespace="operators", image="", version="1.2.3", declared=MANAGED), Verbosity())
    kinds.instruments(metrics)
    authorizer = Authorizer(Client(transport), clock)

    async def scenario() -> tuple[int, str]:
        port = free_port()
        server = OperatorServer(f"127.0.0.1:{port}", metrics, authorizer, Leading(is_ready=is_ready), clock)
        connector = TCPConnector(ssl=False)
        async with (
            server.running(),
            ClientSession(connector=connector) as client,
            client.get(f"https://127.0.0.1:{port}{path}", headers=headers) as found,
        ):
            assert found.version == HttpVersion11
            return found.status, await found.text()

    found = asyncio.run(scenario())
    assert len(transport.requests) == len(script)
    return found


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_probes_need_no_authentication(path: str) -> None:
    """Probes do not cause a review. The certificate is self-signed if none is mounted (R-OP-11)."""
    assert ask(path) == (200, "ok")


def test_server_is_alive_before_it_is_ready() -> None:
    """The server is live before it is ready (R-OP-11)."""
    assert ask("/livez", is_ready=False)[0] == 200
    assert ask("/readyz", is_ready=False)[0] == 503


@pytest.mark.parametrize(
    ("headers", "script", "status"),
    [
        ({}, (), 401),
        ({"authorization": "Bearer t"}, (KNOWN, DENIED), 403),
        ({"authorization": "Bearer t"}, (KNOWN, ALLOWED), 200),
    ],
    ids=["nobody", "may not", "may"],
)
def test_metrics_require_permission(headers: Mapping[str, str], script: tuple[Response, ...], status: int) -> None:
    """The Go operator permits access by OpenShift's Prometheus without a review (R-OP-11)."""
    assert ask("/metrics", *script, headers=headers)[0] == status


def test_build_information_is_a_metric() -> None:
    """A metric contains the build information (R-OP-11)."""
    _, text = ask("/metrics", KNOWN, ALLOWED, headers={"authorization": "Bearer t"})
    (line,) = re.findall(r"^openshift_lws_operator_build_info\{(.*)\} 1\.0$", text, re.MULTILINE)
    found = dict(re.findall(r'(\w+)="([^"]*)"', line))
    assert set(found) == {"major", "minor", "gitCommit", "gitVersion"}
    assert found["gitVersion"] == buildinfo.version()
    assert found["gitVersion"].startswith(f"v{found['major']}.{found['minor']}.")


def test_server_rejects_older_tls_and_http_2() -> None:
    """The server rejects older TLS versions and HTTP/2 (R-OP-11)."""

    async def scenario() -> tuple[str | None, str | None]:
        port = free_port()
        clock, metrics = SystemClock(), Metrics()
        authorizer = Authorizer(Client(ScriptedTransport()), clock)
        server = OperatorServer(f"127.0.0.1:{port}", metrics, authorizer, Leading(is_ready=True), clock)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2", "http/1.1"])
        async with server.running():
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            spoken: ssl.SSLObject = writer.get_extra_info("ssl_object")
            found = spoken.selected_alpn_protocol(), spoken.version()
            writer.close()
            return found

    assert asyncio.run(scenario()) == ("http/1.1", "TLSv1.3")


def test_server_has_a_default_address_and_certificate_folder() -> None:
    """The server has a default address and a default certificate directory (R-OP-11)."""
    assert OperatorProcessSettings(namespace="n", image="i").listen == "0.0.0.0:8443"
    assert Path("/var/run/secrets/serving-cert") == operatorprocess.CERTIFICATES
