"""Tests a watch over TCP after its connection to the server is lost without notice."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from structlog.testing import capture_logs
from testkit.apiserver import serve_api
from testkit.stallingproxy import stalling_proxy

from kuberuntime import timeouts
from kuberuntime.access.access import Access
from kuberuntime.access.credentials import SecretEntry, StoredCredentials
from kuberuntime.cache import reflector
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONFIG_MAPS
from localkube.apiserver.frontend.authentication import Authenticator
from localkube.apiserver.frontend.http import HttpServer
from localkube.apiserver.inprocess import InProcessTransport

TOKEN = "the-token"
LIMIT = 30.0


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def client_at(port: int) -> Client:
    nothing = SecretEntry("")
    credentials = StoredCredentials(token=SecretEntry("", TOKEN.encode()), certificate=nothing, key=nothing)
    return Client(HTTPTransport(Access(f"http://127.0.0.1:{port}", credentials), user_agent="test"))


async def has(informer: Informer, name: str) -> None:
    is_there = asyncio.Event()
    informer.subscribe(lambda change: is_there.set() if meta.name(change.object) == name else None)
    async with timeouts.within(LIMIT):
        await is_there.wait()


async def test_watch_behind_a_half_dead_proxy_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "SILENCE", 0.5)
    async with serve_api(SystemClock()) as api, AsyncExitStack() as stack:
        server = HttpServer(api, token=TOKEN)
        proxy = await stack.enter_async_context(stalling_proxy(await server.start()))
        stack.push_async_callback(server.stop)
        server._guard = Authenticator(proxy.port, TOKEN)  # clients specify the proxy port
        writer, reader = Client(InProcessTransport(api, "test")), client_at(proxy.port)
        stack.push_async_callback(reader.close)
        informer = Informer(reader, CONFIG_MAPS)
        with capture_logs() as logs:  # a slow machine can also be silent before the connection is lost
            following = asyncio.create_task(informer.run())
            stack.callback(following.cancel)
            await informer.wait_synced()
            await writer.create(CONFIG_MAPS, config_map("before"))
            await has(informer, "before")
            proxy.stall()
            await writer.create(CONFIG_MAPS, config_map("after"))
            await has(informer, "after")
        assert "watch did not send events in time, reconnecting" in [line["event"] for line in logs]
