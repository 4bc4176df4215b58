"""Tests that the recorder in the manager uses exactly its permissions, and does not delay recreations."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import pytest
from testkit import virtualtime
from tests import builders
from tests.permissions import Need, RecordingTransport, missing, unused
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster
from tests.unit.leaderworkerset.recording.test_progressfollower import Talking, start
from tests.unit.localkube.apiserver.frontend.test_podstreams import FakeNode

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse, Transport
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.duration import Duration
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels, progressannotations
from leaderworkerset.api.episode import Episode, Outcome
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities import names
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from leaderworkerset.manager.config.configuration import RecorderSettings
from leaderworkerset.manager.controllers import Controllers
from leaderworkerset.manager.flightrecorder import FlightRecorder
from leaderworkerset.recording import configmapstore
from leaderworkerset.recording.permissions import RECORDING
from localkube.podaccess import LogOptions

SETTINGS: Final = RecorderSettings(enable=True, keep_for=Duration(1800))


class Slow:
    """A transport that delays each request by one minute, except watches."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(self, request: Request) -> Response:
        """Wait before sending the request."""
        await asyncio.sleep(60)
        return await self._inner.request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        """Wait before sending the request."""
        await asyncio.sleep(60)
        async with self._inner.stream(request) as response:
            yield response

    async def close(self) -> None:
        """Do nothing, because no connection is open."""


@asynccontextmanager
async def recording(cluster: NodelessCluster, transport: Transport) -> AsyncIterator[None]:
    """Run controllers with a recorder that uses this transport."""
    controllers = Controllers(
        managed_kinds(configured={names.RECORDER: True}),
        Client(cluster.transport),
        clock=cluster.clock,
        instance="test",
    )
    controllers.add_component(FlightRecorder(controllers.caches, Client(transport), cluster.clock, SETTINGS))
    async with controllers.running():
        yield


async def crash(cluster: NodelessCluster, name: str) -> None:
    """Report that a container of the pod exited with an error."""
    pod = await cluster.get(PODS, name)
    end = {"exitCode": 3, "finishedAt": timestamps.render(cluster.clock.now()), "containerID": "x://1"}
    status: JSONObject = {"name": "main", "restartCount": 1, "ready": False, "image": "i", "imageID": "i"}
    patch = {"status": {"containerStatuses": [status | {"lastState": {"terminated": end}}]}}
    await cluster.client.patch(PODS, meta.key(pod), patch, kind="merge", subresource="status")


async def recreated_after(cluster: NodelessCluster) -> float:
    """Make a group fail. Return the seconds until its replacement exists."""
    await cluster.create(builders.leaderworkerset_object(replicas=1, size=2))
    await cluster.settle(200)
    before = (await cluster.uids())["web-0"]
    begun = asyncio.get_running_loop().time()
    await crash(cluster, "web-0-1")
    while (await cluster.uids()).get("web-0", before) == before:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(0.01)
    return asyncio.get_running_loop().time() - begun


@pytest.mark.parametrize("is_slow", [False, True], ids=["fast", "slow"])
def test_recording_delays_no_recreation(is_slow: bool) -> None:
    async def scenario(*, records: bool) -> tuple[float, dict[str, int]]:
        async with NodelessCluster().running() as cluster:
            inner = cluster.client._transport
            running: AbstractAsyncContextManager[None] = (
                recording(cluster, Slow(inner) if is_slow else inner) if records else cluster.managed()
            )
            async with running:
                seconds = await recreated_after(cluster)
                return round(seconds, 2), dict(cluster.transport.writes)

    without = virtualtime.run(scenario(records=False))
    assert virtualtime.run(scenario(records=True)) == without


class Saying(FakeNode):
    """A node on which all containers have printed their progress."""

    async def logs(self, pod: JSONObject, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield a single line."""
        yield b"2026-03-01T12:00:00.5Z ::lws progress step=3 total=9\n"


async def said(cluster: NodelessCluster) -> None:
    """Enable progress reports for a LeaderWorkerSet, and wait until its leader has the annotation."""
    await cluster.bind("web-0", "node")
    run = {"name": "main", "restartCount": 0, "ready": True, "image": "i", "imageID": "i"}
    status = {"containerStatuses": [run | {"state": {"running": {"startedAt": "2026-03-01T12:00:00Z"}}}]}
    pod = await cluster.get(PODS, "web-0")
    await cluster.client.patch(PODS, meta.key(pod), {"status": status}, kind="merge", subresource="status")
    patch = {"metadata": {"annotations": {labels.FOLLOW_PROGRESS: "true"}}}
    await cluster.client.patch(LEADERWORKERSETS, ObjectKey(meta.namespace(pod), "web"), patch, kind="merge")
    await cluster.settle(60)
    found = meta.annotations(await cluster.get(PODS, "web-0"))[labels.PROGRESS]
    assert found == "step=3 total=9 at=2026-03-01T12:00:00.500000+00:00"


async def episodes(client: Client) -> list[Episode]:
    """Return the readable episodes in all namespaces."""
    unpacked = [configmapstore.decompress(obj) async for obj in configmapstore.list_episodes(client, "", "")]
    return [one for one in unpacked if one is not None]


@pytest.mark.slow
def test_recorder_uses_exactly_its_permissions() -> None:
    async def scenario() -> tuple[list[Episode], set[Need]]:
        async with NodelessCluster().running() as cluster:
            transport = RecordingTransport(cluster.client._transport)
            cluster.server.attach_node(Saying())
            async with recording(cluster, transport):
                await recreated_after(cluster)
                await said(cluster)
                await cluster.settle()
                found = await episodes(cluster.client)
                await cluster.settle(2 * 3600)
                assert await episodes(cluster.client) == []
            return found, transport.needs

    (one,), needs = virtualtime.run(scenario())
    assert (one.outcome, one.first_rank, one.failed_pod) == (Outcome.RECREATED, 1, "web-0-1")
    assert missing(RECORDING, needs) == []
    assert unused(RECORDING, needs) == []


def test_recording_permissions_are_added_when_enabled() -> None:
    more = set(managed_kinds(configured={names.RECORDER: True}).permissions) - set(MANAGED.permissions)
    assert {(one.target, one.verbs) for one in more} == {
        ("pods/log", ("get",)),
        ("pods", ("patch",)),
        ("configmaps", ("create", "delete", "list", "patch")),
        ("events", ("list",)),
        ("controllerrevisions", ("list",)),
        ("leaderworkersets", ("get",)),
    }


def test_hang_on_a_cluster_blames_no_rank_for_others() -> None:
    """The manager's caches do not contain pod addresses, and kubelets do not report what ranks wait for."""

    async def scenario() -> None:
        async with NodelessCluster().running() as cluster:
            cluster.server.attach_node(Talking(cluster))
            async with recording(cluster, cluster.client._transport):
                await start(cluster, {labels.PROGRESS_TIMEOUT: "60s"})
                await cluster.settle(120)
                hang = progressannotations.parse_hang(meta.annotations(await cluster.get(PODS, "web-0"))[labels.HANG])
                assert hang is not None
                assert [(one.pod, one.waits) for one in hang.ranks] == [("web-0", ""), ("web-0-1", "")]

    virtualtime.run(scenario(), virtualtime.SingleThreadLoop)
