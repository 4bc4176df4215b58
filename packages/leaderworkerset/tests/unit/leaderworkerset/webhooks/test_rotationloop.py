"""Tests certificate renewal by several replicas without leader election, against an API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest
from testkit import virtualtime
from testkit.fakes import ScriptedTransport, failure
from testkit.inprocess import api
from testkit.transports import ForwardingTransport
from testkit.virtualtime import VirtualClock
from tests.certificates import answer_here

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.clock import Clock, SystemClock
from kuberuntime.errors import ConfigError, ConnectionFailedError
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.webhooks import certificates, configurations, rotation, rotationloop
from leaderworkerset.webhooks.certificatesubprocess import CertificateSubprocess
from leaderworkerset.webhooks.rotation import CertificateSecret
from leaderworkerset.webhooks.rotationloop import LOOK_AT_CLOCK, Rotation, _ClockFollower
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store

pytestmark = pytest.mark.slow

PLACE = rotationloop.certificate_place("default", "lws-webhook-service", "lws-webhook-server-cert")
SERVICE = configurations.at_service("default", "lws-webhook-service")
LIMIT = 10.0
"""The timeout for all conditions in seconds."""

CONFIGURATIONS = configurations.build_configurations(MANAGED.webhooks, SERVICE)


class Replica:
    """Records the certificates that it receives."""

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self.shown: list[bytes] = []
        self._changed = asyncio.Event()
        time = clock or SystemClock()
        self.rotation = Rotation(client, PLACE, time, CertificateSubprocess(time, answer_here), self._show)

    async def _show(self, chain: bytes, until: datetime) -> None:
        assert until == certificates.expires_at(chain)
        self.shown.append(chain)
        self._changed.set()

    async def await_shown(self, count: int) -> bytes:
        """Wait until the given number of certificates is received. Return the last certificate."""
        while len(self.shown) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.shown[-1]


async def install(client: Client) -> None:
    await client.create(
        SECRETS,
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": PLACE.secret.namespace, "name": PLACE.secret.name},
        },
    )
    for resource, obj in CONFIGURATIONS:
        await client.create(resource, obj)


async def material(client: Client) -> CertificateSecret:
    return rotation.read((await client.get(SECRETS, PLACE.secret)).get("data") or {})


async def trusted(client: Client) -> set[str]:
    found: list[JSONObject] = [
        await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, ObjectKey("", configurations.MUTATING_NAME)),
        await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, ObjectKey("", configurations.VALIDATING_NAME)),
    ]
    return {webhook["clientConfig"]["caBundle"] for one in found for webhook in one["webhooks"]}


@asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(replica.rotation.run()) for replica in replicas]
        yield
        for task in tasks:
            task.cancel()


async def test_replicas_agree_on_one_trusted_certificate() -> None:
    async with api() as client:
        await install(client)
        first, second = Replica(client), Replica(client)
        async with running(first, second):
            shown = {await first.await_shown(1), await second.await_shown(1)}
        found = await material(client)
        assert shown == {found.serving.chain}
        assert certificates.is_issued_by(found.serving.certificate, found.bundle)
        assert await trusted(client) == {rotation.write(found)["ca.crt"]}
        assert len(first.shown) == len(second.shown) == 1


async def test_valid_certificate_is_not_written_again() -> None:
    async with api() as client:
        await install(client)
        async with running(first := Replica(client)):
            await first.await_shown(1)
        before = await client.get(SECRETS, PLACE.secret)
        async with running(second := Replica(client)):
            assert await second.await_shown(1) == first.shown[-1]
        assert await client.get(SECRETS, PLACE.secret) == before


async def test_deleted_certificate_is_issued_by_the_same_authority() -> None:
    async with api() as client:
        await install(client)
        async with running(replica := Replica(client)):
            await replica.await_shown(1)
            before = await material(client)
            await client.patch(SECRETS, PLACE.secret, {"data": {"tls.crt": None}}, kind="merge")
            shown = await replica.await_shown(2)
        after = await material(client)
        assert after.authority == before.authority
        assert shown == after.serving.chain != before.serving.chain


async def test_rotation_waits_for_missing_configurations() -> None:
    async with api() as client:
        await install(client)
        key = ObjectKey("", configurations.VALIDATING_NAME)
        await client.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, key)
        async with running(replica := Replica(client)):
            await asyncio.sleep(0.2)
            assert replica.shown == []
            await client.create(*CONFIGURATIONS[1])
            await replica.await_shown(1)


async def test_foreign_configurations_are_not_changed() -> None:
    """Two managers would repeatedly replace each other's CA."""
    elsewhere = configurations.at_service("another", "lws-webhook-service", b"theirs")
    async with api() as client:
        await install(client)
        for resource, obj in configurations.build_configurations(MANAGED.webhooks, elsewhere):
            await client.apply(resource, obj, manager="another")
        before = await trusted(client)
        replica = Replica(client)
        async with running(replica):
            await replica.await_shown(1)
        assert await trusted(client) == before


async def test_missing_secret_is_created_at_the_start() -> None:
    async with api() as client:
        for resource, obj in CONFIGURATIONS:
            await client.create(resource, obj)
        first, second = Replica(client), Replica(client)
        async with running(first, second):
            shown = {await first.await_shown(1), await second.await_shown(1)}
        assert shown == {(await material(client)).serving.chain}


async def test_deleted_secret_is_created_again() -> None:
    async with api() as client:
        await install(client)
        replica = Replica(client)
        async with running(replica):
            first = await replica.await_shown(1)
            await client.delete(SECRETS, PLACE.secret)
            second = await replica.await_shown(2)
        assert first != second == (await material(client)).serving.chain


async def test_missing_secret_is_an_error_without_the_permission() -> None:
    """The manager exits and reports the missing object (R-CERT-1)."""
    transport = ScriptedTransport(failure(404, "NotFound"), failure(403, "Forbidden"))
    with pytest.raises(ConfigError, match=r"Secret default/lws-webhook-server-cert not found, .*\. Run lws install"):
        await Replica(Client(transport)).rotation.run()


class LateSecrets(ForwardingTransport):
    """A transport whose watch of Secrets stops delivering events when it is late. Other requests are forwarded."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.is_late = False

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        async with self.inner.stream(request) as response:
            chunks = self._delayed(response.chunks) if "/secrets" in request.path else response.chunks
            yield StreamResponse(response.status, response.headers, chunks)

    async def _delayed(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if self.is_late:
                await asyncio.Event().wait()
            yield chunk


async def test_outdated_replica_does_not_revert_a_new_authority() -> None:
    """The replica's watch may be minutes late, and API servers would reject the other replicas' certificates."""
    async with api() as client:
        await install(client)
        late = LateSecrets(client._transport)
        behind, current = Replica(Client(late)), Replica(client)
        async with running(behind, current):
            await behind.await_shown(1)
            await current.await_shown(1)
            late.is_late = True
            await client.patch(SECRETS, PLACE.secret, {"data": {"ca.key": None}}, kind="merge")
            bundle = await until_renewed(client)
            found = set[frozenset[str]]()
            for _ in range(50):
                found.add(frozenset(await trusted(client)))
                await asyncio.sleep(0.02)
        assert found == {frozenset({bundle})}


async def until_renewed(client: Client) -> str:
    """Wait until both configurations trust a new CA in addition to the previous CA. Return the bundle."""
    while True:
        bundle = rotation.write(await material(client))["ca.crt"]
        if len(certificates.split((await material(client)).bundle)) == 2 and await trusted(client) == {bundle}:
            return bundle
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "outage",
    [ConnectionFailedError("cannot reach it"), failure(503, "ServiceUnavailable"), failure(429, "TooManyRequests")],
    ids=["unreachable", "503", "429"],
)
@pytest.mark.virtual_time
async def test_rotation_waits_for_an_unreachable_api_server(outage: Response | Exception) -> None:
    """If the process exited, this pod would restart minutes after the outage."""
    missing = failure(404, "NotFound")
    transport = ScriptedTransport(*[outage] * 20, missing, failure(403, "Forbidden"))
    with pytest.raises(ConfigError, match="Run lws install"):
        await Replica(Client(transport), VirtualClock()).rotation.run()
    assert len(transport.requests) == 22


@pytest.mark.virtual_time
async def test_clock_change_causes_a_new_plan_within_a_minute() -> None:
    clock, planned = VirtualClock(), list[float]()
    follower = _ClockFollower(clock, lambda: planned.append(clock.monotonic()))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(follower.run())
        await asyncio.sleep(86400)
        assert planned == []
        for jump in (400 * 86400.0, -400 * 86400.0, 0.0):
            clock.jump = jump
            began = clock.monotonic()
            await asyncio.sleep(10 * LOOK_AT_CLOCK)
            assert len(planned) == 1
            assert planned.pop() - began <= LOOK_AT_CLOCK
        running.cancel()


def test_clock_change_renews_an_expired_certificate() -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        server = ApiServer(Store(), builtin.kinds(), clock)
        await server.start()
        client = Client(InProcessTransport(server, "test"))
        await install(client)
        replica = Replica(client, clock)
        async with running(replica):
            first = await replica.await_shown(1)
            clock.jump = 400 * 86400.0
            assert await asyncio.wait_for(replica.await_shown(2), 2 * LOOK_AT_CLOCK) != first
        shown = certificates.expires_at((await material(client)).serving.certificate)
        assert shown > clock.now()
        await server.close()

    virtualtime.run(scenario(), virtualtime.SingleThreadLoop)
