"""Tests that no write is sent after the lease expires, and that no write takes longer than the lease."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trustme
from aiohttp import web
from testkit.fakes import ScriptedTransport, respond

from kuberuntime.access.access import TLS, Access
from kuberuntime.access.credentials import SecretEntry, StoredCredentials
from kuberuntime.client.fence import CLOSED, FencedSocket, FencedTransport, NotLeadingError
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.ratelimit import LimitedTransport, TokenBucket
from kuberuntime.client.transport import Request, Response, Transport
from kuberuntime.clock import SystemClock
from kuberuntime.controller.workqueue import WorkQueue, run_workers
from kuberuntime.errors import ConnectionFailedError

OPEN = 3600.0
NOTHING = SecretEntry("")
GET = Request("GET", "/pods")
SLOW = Request("POST", "/slow", body=b"{}")
POST = Request("POST", "/pods", body=b"{}")


@dataclass
class Gate:
    """A fence that the test closes."""

    seconds: float = OPEN

    def remaining(self) -> float:
        return self.seconds


@dataclass
class Until:
    """A fence that closes at a given time of the event loop."""

    deadline: float

    def remaining(self) -> float:
        return self.deadline - asyncio.get_running_loop().time()


@dataclass
class Server:
    """Records complete requests. Responds to `/slow` when it is released."""

    access: Access
    arrived: list[str] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, request: web.Request) -> web.Response:
        self.begun.set()
        self.arrived.append(f"{request.method} {request.path}")
        if request.path == "/slow":
            await self.released.wait()
        return web.json_response({})


@asynccontextmanager
async def server(context: ssl.SSLContext | None = None, tls: TLS | None = None) -> AsyncIterator[Server]:
    app = web.Application()
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        scheme = "https" if context else "http"
        address = f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
        made = Server(
            Access(address, StoredCredentials(token=NOTHING, certificate=NOTHING, key=NOTHING), tls=tls or TLS())
        )
        app.router.add_route("*", "/{path:.*}", made.serve)
        await runner.setup()
        await web.SockSite(runner, listening, ssl_context=context).start()
        try:
            yield made
        finally:
            await runner.cleanup()


@asynccontextmanager
async def leader(server: Server, gate: Gate, *, connections: int = 4, qps: float = 500.0) -> AsyncIterator[Transport]:
    """Return an HTTP transport with a rate limit and a fence, as the controllers of a manager use it."""
    http = HTTPTransport(server.access, user_agent="lws/test", connections=connections, fence=gate)
    try:
        yield LimitedTransport(FencedTransport(http, gate), TokenBucket(qps, 1), SystemClock())
    finally:
        await http.close()


@pytest.mark.slow
async def test_write_delayed_by_the_rate_limiter_is_not_sent() -> None:
    """The process is paused while its writes wait. When it resumes, the rate limiter releases the writes."""
    gate = Gate()
    async with server() as running, leader(running, gate, qps=50.0) as transport:
        await transport.request(POST)
        waiting = asyncio.create_task(transport.request(POST))
        await asyncio.sleep(0)
        gate.seconds = 0.0
        with pytest.raises(NotLeadingError, match="POST /pods was not sent"):
            await waiting
        assert running.arrived == ["POST /pods"]


async def test_write_delayed_by_a_missing_connection_is_not_sent() -> None:
    gate = Gate()
    async with server() as running, leader(running, gate, connections=1) as transport:
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(transport.request(SLOW))
            await running.begun.wait()
            waiting = tasks.create_task(outcome(transport, POST))
            await asyncio.sleep(0.01)
            gate.seconds = 0.0
            running.released.set()
        assert first.result().status == 200
        assert isinstance(waiting.result(), NotLeadingError)
        assert running.arrived == ["POST /slow"]


def test_rest_of_a_delayed_write_is_not_sent() -> None:
    """The server reads the first part of the request. The process is then paused, and the server reads on."""
    gate = Gate()
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        FencedSocket(gate, socket.AF_INET, socket.SOCK_STREAM, 0) as sending,
    ):
        sending.connect(listening.getsockname())
        assert sending.send(b"first") == len(b"first")
        gate.seconds = 0.0
        with pytest.raises(ConnectionAbortedError, match="is no longer the leader"):
            sending.send(b"rest")
        with pytest.raises(ConnectionAbortedError, match="is no longer the leader"):
            sending.sendmsg([b"rest"])


async def test_write_delayed_by_the_handshake_is_not_sent() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    gate = Gate()

    def close_gate(*_: object) -> None:
        gate.seconds = 0.0

    context.sni_callback = close_gate  # during the TLS handshake
    trusted = TLS(authority=authority.cert_pem.bytes())
    async with server(context, trusted) as running, leader(running, gate) as transport:
        assert isinstance(await outcome(transport, POST), NotLeadingError)
        assert running.arrived == []


async def test_reads_pass_a_closed_fence() -> None:
    gate = Gate(0.0)
    async with server() as running, leader(running, gate) as transport:
        assert (await transport.request(GET)).status == 200
        async with transport.stream(GET) as found:
            assert found.status == 200


@pytest.mark.virtual_time
async def test_write_is_abandoned_when_the_lease_ends() -> None:
    """The server also has a time limit, because a paused process cannot cancel a write."""
    silent = SilentTransport()
    with pytest.raises(NotLeadingError, match="POST /pods was cancelled"):
        await FencedTransport(silent, Until(3.0)).request(POST)
    assert asyncio.get_running_loop().time() == pytest.approx(3.0)
    assert silent.requests[0].query == (("timeout", "3000ms"),)


@pytest.mark.virtual_time
async def test_unanswered_write_of_a_leader_is_a_connection_error() -> None:
    with pytest.raises(ConnectionFailedError, match="POST /pods did not respond within 2"):
        await FencedTransport(SilentTransport(), Gate(2.0)).request(POST)
    transport = ScriptedTransport(ConnectionFailedError("refused"), respond(201, {}))
    fenced = FencedTransport(transport, Gate())
    with pytest.raises(ConnectionFailedError, match="refused"):
        await fenced.request(POST)
    assert (await fenced.request(POST)).status == 201


class SilentTransport(ScriptedTransport):
    """A transport that never responds."""

    async def request(self, request: Request) -> Response:
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError


async def outcome(transport: Transport, request: Request) -> Response | Exception:
    try:
        return await transport.request(request)
    except (NotLeadingError, ConnectionFailedError) as error:
        return error


@pytest.mark.virtual_time
async def test_due_keys_are_retried_slowly_while_the_fence_is_closed() -> None:
    """A queue of failing keys does not prevent a leader from renewing its lease in time."""
    tried: list[int] = []

    transport = FencedTransport(ScriptedTransport(), Gate(0.0))
    queue = WorkQueue[int]()
    for key in range(1000):
        queue.add(key)

    async def write(key: int) -> None:
        tried.append(key)
        await transport.request(POST)

    working = asyncio.ensure_future(run_workers(queue, write, name="test", workers=5))
    await asyncio.sleep(10.5 * CLOSED)
    working.cancel()
    assert len(tried) == 55
