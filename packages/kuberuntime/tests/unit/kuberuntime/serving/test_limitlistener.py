"""Tests that clients that send no data, or too much data, do not block other clients."""

import asyncio
import logging
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from logging.handlers import QueueHandler
from pathlib import Path
from queue import SimpleQueue

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs
from testkit import certificates
from testkit.stoppedclock import StoppedLoop, UnfinishedRequest, tasks_end

from kuberuntime.serving import limitlistener, serving
from kuberuntime.serving.bindaddresses import Address
from kuberuntime.serving.limitlistener import ConnectionLimits
from kuberuntime.serving.serving import Listener

pytestmark = pytest.mark.slow

LIMIT = 20.0
"""The timeout of each condition, in seconds."""

FEW = 8
CROWD = 300
SERVING = certificates.issue()
BEGINNING = b"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"


class Application:
    """Responds to `/hello` immediately, and to `/held` when it is released."""

    def __init__(self) -> None:
        self.held = asyncio.Event()
        self.released = asyncio.Event()

    async def hello(self, _: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def hold(self, _: web.Request) -> web.Response:
        self.held.set()
        await self.released.wait()
        return web.Response(text="held")


@asynccontextmanager
async def listener(limits: ConnectionLimits, *, tls: bool = True) -> AsyncIterator[tuple[Application, str, int]]:
    handlers, application = Application(), web.Application()
    application.add_routes([web.get("/hello", handlers.hello), web.get("/held", handlers.hold)])
    context = serving.server_context(SERVING.chain) if tls else None
    async with Listener(application, Address("127.0.0.1", 0), context, limits=limits) as running:
        yield handlers, f"{'https' if tls else 'http'}://127.0.0.1:{running.port}", running.port


@asynccontextmanager
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=certificates.TRUSTED.decode()))
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(LIMIT)) as session:
        yield session


async def get(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as answer:
        return await answer.text()


@contextmanager
def connected(port: int, count: int, text: bytes = b"") -> Iterator[list[socket.socket]]:
    """Open `count` connections, and send some bytes on each."""
    with ExitStack() as stack:
        made = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
        for one in made:
            one.setblocking(False)
            one.sendall(text)
        yield made


async def end_of(one: socket.socket) -> None:
    """Wait until the server closes a connection."""
    async with asyncio.timeout(LIMIT):
        with suppress(ConnectionResetError):
            while await asyncio.get_running_loop().sock_recv(one, 4096):
                continue


@pytest.mark.slow
@pytest.mark.parametrize("tls", [True, False], ids=["https", "http"])
async def test_idle_connections_do_not_block_others(tls: bool) -> None:
    async with listener(ConnectionLimits(FEW), tls=tls) as (_, url, port), client() as session:
        with connected(port, CROWD) as crowd:
            assert await get(session, f"{url}/hello") == "hello"
            await end_of(crowd[0])


@pytest.mark.parametrize(("tls", "text"), [(True, b""), (False, b""), (False, BEGINNING)], ids=["tls", "http", "half"])
async def test_connection_without_a_request_is_closed_in_time(tls: bool, text: bytes) -> None:
    async with listener(ConnectionLimits(FEW, headers=0.2), tls=tls) as (_, _, port):
        with connected(port, 1, text) as made:
            await end_of(made[0])


async def test_idle_connection_is_closed_in_time() -> None:
    async with listener(ConnectionLimits(FEW, idle=0.2), tls=False) as (_, _, port):
        with connected(port, 1, b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n") as made:
            await end_of(made[0])


async def test_probes_and_metrics_do_not_wait_for_a_body() -> None:
    """The connections of such requests are closed immediately after the response."""
    async with listener(ConnectionLimits(FEW), tls=False) as (_, _, port):
        loop = asyncio.get_running_loop()
        at_rest = len(asyncio.all_tasks())
        with StoppedLoop(loop):
            staying, leaving = [
                await asyncio.to_thread(UnfinishedRequest, port, "POST /hello HTTP/1.1") for _ in range(2)
            ]
            leaving.leave()
            assert (staying.status, leaving.status) == (405, 405)
            assert await asyncio.to_thread(staying.read_to_end)
            assert await tasks_end(loop, at_rest)
            staying.leave()


@pytest.mark.slow
async def test_request_being_served_has_no_time_limit() -> None:
    """In the meantime, more connections are opened and closed than the limit permits at the same time."""
    limits = ConnectionLimits(2, headers=0.2, idle=0.2)
    async with listener(limits) as (handlers, url, port), client() as session, asyncio.TaskGroup() as tasks:
        held = tasks.create_task(get(session, f"{url}/held"))
        await handlers.held.wait()
        for _ in range(3):
            with connected(port, FEW) as crowd:
                await end_of(crowd[0])
        handlers.released.set()
        assert await held == "held"


@pytest.mark.slow
async def test_connections_are_served_where_loops_watch_no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop on Windows has no `add_reader`, so connections beyond the limit are closed."""

    def refuse(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_reader", refuse)
    async with listener(ConnectionLimits(1)) as (handlers, url, _), client() as session, asyncio.TaskGroup() as tasks:
        held = tasks.create_task(get(session, f"{url}/held"))
        await handlers.held.wait()
        with pytest.raises(aiohttp.ClientError):
            await get(session, f"{url}/hello")
        handlers.released.set()
        assert await held == "held"
        assert await get(session, f"{url}/hello") == "hello"


@pytest.mark.slow
async def test_connections_beyond_the_limit_are_served_later() -> None:
    async with listener(ConnectionLimits(1)) as (handlers, url, _), client() as session, asyncio.TaskGroup() as tasks:
        held = tasks.create_task(get(session, f"{url}/held"))
        await handlers.held.wait()
        waiting = tasks.create_task(get(session, f"{url}/hello"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        handlers.released.set()
        assert (await held, await waiting) == ("held", "hello")


def test_connections_without_http_log_at_most_one_line() -> None:
    records: SimpleQueue[logging.LogRecord] = SimpleQueue()
    handler = QueueHandler(records)

    async def scenario() -> None:
        async with listener(ConnectionLimits(FEW), tls=False) as (_, _, port):
            for _ in range(10):
                with connected(port, 1, b"GET / HTTP/1.1\r\n\x00: x\r\n\r\n") as made:
                    await end_of(made[0])

    logging.getLogger().addHandler(handler)
    try:
        asyncio.run(scenario())
    finally:
        logging.getLogger().removeHandler(handler)
    assert records.qsize() <= 1


@pytest.mark.slow
async def test_exhausted_descriptors_are_logged_once_and_survived() -> None:
    async with listener(ConnectionLimits(CROWD), tls=False) as (_, url, port), client() as session:
        with capture_logs() as logs, connected(port, 1, b"") as made, exhausted():
            with suppress(OSError):
                made[0].sendall(BEGINNING)
            await asyncio.sleep(1.5 * limitlistener.PAUSE_SECONDS)
        refused = [entry for entry in logs if entry["log_level"] == "warning"]
        assert [entry["error"] for entry in refused] == ["Too many open files"]
        assert await get(session, f"{url}/hello") == "hello"


@contextmanager
def exhausted() -> Iterator[None]:
    """Use all available file descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
    with ExitStack() as stack:
        with suppress(OSError):
            while True:
                stack.enter_context(Path(os.devnull).open())
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(("soft", "expected"), [(1024, 256), (100, 50), (1, 1)])
def test_connections_use_a_share_of_the_descriptors(soft: int, expected: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        assert limitlistener.connection_limits(256).connections == expected
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
