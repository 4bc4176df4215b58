"""Tests a transport whose cluster restarts. It uses a new token or port immediately, and sends writes once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.errors import ConfigError, ConnectionFailedError
from lwsctl.cli.cluster.reconnectingtransport import ReconnectingTransport

READ, WRITE = Request("GET", "/api"), Request("POST", "/api")


@dataclass
class Server:
    """An API server that accepts one token. It does not listen without a token."""

    token: str
    served: list[Request] = field(default_factory=list)

    def ask(self, token: str, request: Request) -> int:
        """Return the status code of the response."""
        if not self.token:
            raise ConnectionFailedError("connection refused")
        if token != self.token:
            return 401
        self.served.append(request)
        return 200


@dataclass
class Connection:
    """Replaces `HTTPTransport`, and stores its token."""

    server: Server
    token: str

    async def request(self, request: Request) -> Response:
        """Send a request. Other requests may run in between."""
        await asyncio.sleep(0)
        return Response(self.server.ask(self.token, request), {}, b"")

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Open a stream without content."""
        yield StreamResponse(self.server.ask(self.token, request), {}, _nothing())

    async def close(self) -> None:
        """Do nothing."""


async def _nothing() -> AsyncIterator[bytes]:
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    return path


def lasting(server: Server, file: Path) -> tuple[ReconnectingTransport, list[str]]:
    """Return the transport, and the list of tokens after each renewal."""
    renewals: list[str] = []

    def make() -> Any:
        if file.read_text() == "half":
            raise ConfigError("a kubeconfig that is written only half")
        return Connection(server, file.read_text())

    transport = ReconnectingTransport(lambda: [file], make)
    transport.on_renewal.append(lambda: renewals.append(file.read_text()))
    return transport, renewals


@pytest.mark.parametrize("request_", [READ, WRITE])
async def test_a_request_with_an_expired_token_is_sent_again(file: Path, request_: Request) -> None:
    server = Server("new")
    transport, renewals = lasting(server, file)
    assert (await transport.request(request_)).status == 401, "nobody has logged in yet"
    for content, status in (("half", 401), ("new", 200), ("new", 200)):
        file.write_text(content)
        assert (await transport.request(request_)).status == status
    assert (server.served, renewals) == ([request_, request_], ["new"])


async def test_requests_rejected_together_are_all_retried(file: Path) -> None:
    transport, renewals = lasting(Server("new"), file)
    file.write_text("new")
    answers = await asyncio.gather(*(transport.request(READ) for _ in range(5)))
    assert ([answer.status for answer in answers], renewals) == ([200] * 5, ["new"])


async def test_a_write_without_an_answer_is_not_sent_again(file: Path) -> None:
    server = Server("")
    transport, _ = lasting(server, file)
    file.write_text("new")
    with pytest.raises(ConnectionFailedError):
        await transport.request(WRITE)
    server.token = "new"
    assert (await transport.request(READ)).status == 200
    assert server.served == [READ]


async def test_a_read_is_sent_to_the_new_address_of_the_cluster(file: Path) -> None:
    servers = {"old": Server(""), "new": Server("new")}
    transport = ReconnectingTransport(lambda: [file], lambda: Connection(servers[file.read_text()], "new"))  # type: ignore[arg-type,return-value]
    file.write_text("new")
    assert (await transport.request(READ)).status == 200


async def test_rejected_stream_is_retried_with_the_new_token(file: Path) -> None:
    transport, renewals = lasting(Server("new"), file)
    file.write_text("new")
    statuses = []
    for _ in range(2):
        async with transport.stream(READ) as response:
            statuses.append(response.status)
    assert (statuses, renewals) == ([401, 200], ["new"])
