"""Tests the HTTP server over real sockets."""

import asyncio
import io
import json
import resource
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from testkit.stoppedclock import StoppedLoop, UnfinishedRequest, tasks_end
from tests.unit.localkube.apiserver.harness import PODS, StoppedClock, config_map, pod, served

from kuberuntime.serving.limitlistener import LINGER_SECONDS
from localkube.apiserver.frontend.http import BODY_LIMIT, HttpServer, ListenError
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store
from localkube.certificate import build_certificate, server_context

TOKEN = "the-token"
CROWD = 200
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass
class Door:
    """A listening server and its client."""

    server: HttpServer
    api: ApiServer
    port: int
    session: aiohttp.ClientSession

    async def send(self, method: str, path: str, **options: Any) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {TOKEN}"} | options.pop("headers", {})
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.session.request(method, url, headers=headers, **options) as answer:
            assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
            return answer.status, json.loads(await answer.read())


@asynccontextmanager
async def door(**options: Any) -> AsyncIterator[Door]:
    api = ApiServer(Store(), served(), StoppedClock())
    await api.start()
    server = HttpServer(api, token=TOKEN, **options)
    port = await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Door(server, api, port, session)
    finally:
        await server.stop()
        await api.close()


@pytest.fixture(name="door")
def opened() -> AbstractAsyncContextManager[Door]:
    return door()


async def test_requests_are_answered(door: Door) -> None:
    code, created = await door.send("POST", CONFIG_MAPS, json=config_map("a", k="v"))
    assert (code, created["data"]) == (201, {"k": "v"})
    assert await door.send("GET", f"{CONFIG_MAPS}/a") == (200, created)
    code, listed = await door.send("GET", f"{CONFIG_MAPS}?labelSelector=x%20in%20(a)&limit=5")
    assert (code, listed["items"]) == (200, [])


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer guess"}, 401),
        ({"host": "rebound.example:80"}, 403),
        ({"origin": "https://page.example"}, 403),
    ],
    ids=["no token", "wrong token", "rebound name", "page"],
)
async def test_other_users_and_web_pages_are_rejected(door: Door, headers: dict[str, str], code: int) -> None:
    for method, path in (("GET", CONFIG_MAPS), ("POST", CONFIG_MAPS), ("GET", "/healthz"), ("GET", "/version")):
        status, body = await door.send(method, path, headers=headers, data=b"{}")
        assert (status, body["kind"], body["status"]) == (code, "Status", "Failure")
    assert (await door.send("GET", CONFIG_MAPS))[1]["items"] == []


async def test_preflight_request_of_a_page_is_rejected(door: Door) -> None:
    headers = {"origin": "https://page.example", "access-control-request-method": "POST", "authorization": ""}
    assert (await door.send("OPTIONS", CONFIG_MAPS, headers=headers))[0] == 403


async def test_form_post_is_rejected_even_with_the_token(door: Door) -> None:
    status, body = await door.send("POST", CONFIG_MAPS, data={"metadata": "x"})
    assert (status, body["reason"]) == (415, "UnsupportedMediaType")
    text = {"content-type": "text/plain"}
    assert (await door.send("POST", CONFIG_MAPS, data=b"{}", headers=text))[0] == 415


async def test_body_over_the_limit_is_rejected(door: Door) -> None:
    large = io.BytesIO(json.dumps(config_map("a", k="x" * BODY_LIMIT)).encode())
    status, body = await door.send("POST", CONFIG_MAPS, data=large, headers={"content-type": "application/json"})
    assert (status, body["reason"]) == (413, "RequestEntityTooLarge")


async def test_watch_is_streamed_and_closes_with_the_server(door: Door) -> None:
    url = f"http://127.0.0.1:{door.port}{CONFIG_MAPS}?watch=true"
    async with door.session.get(url, headers={"authorization": f"Bearer {TOKEN}"}) as watch:
        await door.send("POST", CONFIG_MAPS, json=config_map("a"))
        event = json.loads(await watch.content.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
        before = asyncio.get_running_loop().time()
        await door.server.stop()
        assert await watch.content.read() == b""
        assert asyncio.get_running_loop().time() - before < 1


async def test_disconnected_watcher_is_forgotten(door: Door) -> None:
    url = f"http://127.0.0.1:{door.port}{PODS}?watch=true"
    async with door.session.get(url, headers={"authorization": f"Bearer {TOKEN}"}):
        assert door.api.backend.broadcaster.watcher_count == 1
    while door.api.backend.broadcaster.watcher_count:
        await door.send("POST", PODS, json=pod(f"p{id(object())}"))


async def test_port_in_use_is_named(door: Door) -> None:
    other = HttpServer(door.api, token=TOKEN)
    with pytest.raises(
        ListenError, match=rf"127\.0\.0\.1:{door.port}: in use by a different process. Use a different port"
    ):
        await other.start(door.port)


async def test_certificate_enables_https() -> None:
    certificate, key = build_certificate(datetime.now(UTC))
    async with door(ssl_context=server_context(certificate, key)) as opened:
        trusted = ssl.create_default_context(cadata=certificate.decode())
        headers = {"authorization": f"Bearer {TOKEN}"}
        for host in ("127.0.0.1", "localhost"):
            url = f"https://{host}:{opened.port}/version"
            async with opened.session.get(url, headers=headers, ssl=trusted) as answer:
                assert answer.status == 200


async def test_hanging_client_does_not_delay_the_shutdown() -> None:
    """The client does not respond to the TLS close notification.

    asyncio waits 30 s for it; so does closing a server from Python 3.12.1 on.
    """
    certificate, key = build_certificate(datetime.now(UTC))

    def connect(port: int) -> ssl.SSLSocket:
        trusted = ssl.create_default_context(cadata=certificate.decode())
        client = trusted.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="localhost")
        head = f"GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(12) == b"HTTP/1.1 200"
        return client

    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(door(ssl_context=server_context(certificate, key)))
        with await asyncio.to_thread(connect, opened.port):
            async with asyncio.timeout(20):
                await stack.aclose()


@pytest.mark.slow
async def test_idle_connections_keep_no_client_out() -> None:
    """If the connection limit is exceeded, the oldest connection is closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (CROWD, hard))
    try:
        async with asyncio.timeout(10), door() as one:
            # the server has derived its connection limit from the lowered RLIMIT_NOFILE
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            with ExitStack() as crowd:
                crowded = [crowd.enter_context(socket.create_connection(("127.0.0.1", one.port))) for _ in range(CROWD)]
                assert (await one.send("GET", CONFIG_MAPS))[0] == 200
                crowded[0].settimeout(10)
                assert await asyncio.to_thread(crowded[0].recv, 1) == b""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_rest_of_a_request_body_is_awaited_for_a_bounded_time() -> None:
    """The connection of a waiting client is closed, and all state of a disconnected client is removed."""
    async with door() as opened:
        loop = asyncio.get_running_loop()
        at_rest = len(asyncio.all_tasks())
        with StoppedLoop(loop) as time:
            head = f"POST {CONFIG_MAPS} HTTP/1.1"  # and no token
            staying, leaving = [await asyncio.to_thread(UnfinishedRequest, opened.port, head) for _ in range(2)]
            leaving.leave()
            assert (staying.status, leaving.status) == (401, 401)
            await time.move(LINGER_SECONDS)
            assert await asyncio.to_thread(staying.read_to_end)
            assert await tasks_end(loop, at_rest)
            staying.leave()
