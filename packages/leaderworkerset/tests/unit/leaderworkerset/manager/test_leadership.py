"""Tests that a leader with silent watches is not ready, and recovers without a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs
from tests.integration.clusters import objects

from kuberuntime.cache.reflector import SILENCE
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, StreamResponse
from kuberuntime.clock import SystemClock
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import STATEFULSETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.manager.leadership import LeaderRunner
from leaderworkerset.manager.webhookowner import WebhookOwner
from leaderworkerset.webhooks import configurations
from localkube.apiserver import builtin
from localkube.apiserver.custom.customresource import kind_from_crd
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

pytestmark = pytest.mark.virtual_time

KEY = ObjectKey("default", "web")


class HalfDead(InProcessTransport):
    """Responds to requests, but streams send no data while `is_mute`. Older streams never send data afterwards."""

    is_mute = False

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server, "test")
        self._open: set[asyncio.Event] = set()

    def mute(self) -> None:
        self.is_mute = True
        for is_dead in self._open:
            is_dead.set()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        is_dead = asyncio.Event()
        self._open.add(is_dead)
        if self.is_mute:
            is_dead.set()
        async with super().stream(request) as response:
            yield StreamResponse(response.status, response.headers, _alive(response.chunks, is_dead))


async def _alive(chunks: AsyncIterator[bytes], is_dead: asyncio.Event) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        if is_dead.is_set():
            await asyncio.Event().wait()
        yield chunk


@asynccontextmanager
async def leading() -> AsyncIterator[tuple[LeaderRunner, HalfDead, Client]]:
    server = ApiServer(Store(), [*builtin.kinds(), *map(kind_from_crd, MANAGED.definitions())], SystemClock())
    await server.start()
    transport = HalfDead(server)
    client, other = Client(transport), Client(InProcessTransport(server, "other"))
    owner = WebhookOwner(client, "lws-system")
    part = LeaderRunner(
        lambda: Controllers(MANAGED, client, clock=SystemClock(), instance="a"), election=None, owner=owner
    )
    async with part.running():
        await other.create(LEADERWORKERSETS, objects.lws("web", replicas=2, size=1) | named())
        await asyncio.sleep(100)
        assert part.is_ready
        assert part.receives_changes()
        yield part, transport, other
    await server.close()


def named() -> dict[str, object]:
    return {"metadata": {"name": KEY.name, "namespace": KEY.namespace}}


async def replicas(client: Client) -> int:
    return int((await client.get(STATEFULSETS, KEY))["spec"]["replicas"])


async def test_leader_acts_soon_after_its_streams_died() -> None:
    async with leading() as (part, transport, client):
        transport.mute()
        transport.is_mute = False
        await client.patch(LEADERWORKERSETS, KEY, {"spec": {"replicas": 3}}, kind="merge")
        await asyncio.sleep(SILENCE + 1)
        assert await replicas(client) == 3
        assert part.receives_changes()


async def test_leader_without_any_changes_is_not_ready() -> None:
    async with leading() as (part, transport, client):
        with capture_logs() as logs:
            transport.mute()
            await client.patch(LEADERWORKERSETS, KEY, {"spec": {"replicas": 3}}, kind="merge")
            await asyncio.sleep(SILENCE + 1)
            assert not part.receives_changes()
            await asyncio.sleep(5 * SILENCE)
            assert not part.receives_changes()
        silent = [
            line["resource"]
            for line in logs
            if "did not send events" in line["event"] and line["log_level"] == "warning"
        ]
        assert silent.count("leaderworkersets.leaderworkerset.x-k8s.io") == 1
        transport.is_mute = False
        await asyncio.sleep(SILENCE + 1)
        assert part.receives_changes()
        assert await replicas(client) == 3


def configuration(namespace: str) -> dict[str, object]:
    """Return a webhook configuration that is never called in these tests."""
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}
    webhook = {
        "name": "nothing.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [rule],
        "clientConfig": {"service": {"namespace": namespace, "name": configurations.SERVICE_NAME}},
    }
    metadata = {"name": configurations.VALIDATING_NAME}
    return {**VALIDATING_WEBHOOK_CONFIGURATIONS.type_meta, "metadata": metadata, "webhooks": [webhook]}


async def test_manager_whose_webhooks_lead_elsewhere_does_not_lead() -> None:
    async with leading() as (part, _, client):
        with capture_logs() as logs:
            await client.apply(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration("another"), manager="test")
            await asyncio.sleep(1)
            leads = [part.is_ready]
            await client.patch(LEADERWORKERSETS, KEY, {"spec": {"replicas": 3}}, kind="merge")
            await asyncio.sleep(600)
            assert await replicas(client) == 2
        errors = [line for line in logs if line["log_level"] == "error"]
        assert [line["namespace"] for line in errors] == ["another"]
        await client.apply(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration("lws-system"), manager="test")
        await asyncio.sleep(1)
        leads.append(part.is_ready)
        assert leads == [False, True]
        assert await replicas(client) == 3
