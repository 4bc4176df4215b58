"""Tests that stopped controllers finish their current work and do not start new work."""

import asyncio

import pytest
from testkit.transports import ForwardingTransport
from tests.builders import leaderworkerset_object
from tests.unit.leaderworkerset.controllers.cluster import CountingTransport, NodelessCluster

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, Transport
from kuberuntime.objects.resources import STATEFULSETS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager.controllers import FINISH_SECONDS, Controllers

pytestmark = pytest.mark.virtual_time


class SlowTransport(ForwardingTransport):
    """A transport that delays writes."""

    def __init__(self, inner: CountingTransport, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds
        self.began = asyncio.Event()

    async def request(self, request: Request) -> Response:
        if request.method != "GET":
            self.began.set()
            await asyncio.sleep(self._seconds)
        return await self.inner.request(request)


def controllers_of(cluster: NodelessCluster, transport: Transport) -> Controllers:
    return Controllers(MANAGED, Client(transport), clock=cluster.clock, instance="test")


async def stop_in_the_middle(cluster: NodelessCluster, seconds: float) -> float:
    """Request the stop after the first write starts. Return the duration in seconds."""
    transport = SlowTransport(cluster.transport, seconds)
    controllers = controllers_of(cluster, transport)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(controllers.run())
        await cluster.create(leaderworkerset_object(replicas=1, size=1))
        await transport.began.wait()
        controllers.stop()
        begun = loop.time()
        await task
        return loop.time() - begun


async def test_stop_finishes_the_current_reconciliation() -> None:
    cluster = NodelessCluster()
    async with cluster.running():
        assert await stop_in_the_middle(cluster, 0.2) < 2 * FINISH_SECONDS
        assert len(await cluster.objects(STATEFULSETS)) == 1
        assert await cluster.notes() != []


async def test_stop_cancels_a_reconciliation_that_takes_too_long() -> None:
    cluster = NodelessCluster()
    async with cluster.running():
        assert await stop_in_the_middle(cluster, 60.0) <= 2 * FINISH_SECONDS
        assert await cluster.objects(STATEFULSETS) == []


async def test_stop_is_immediate_before_the_controllers_start() -> None:
    cluster = NodelessCluster()
    async with cluster.running():
        controllers = controllers_of(cluster, cluster.transport)
        controllers.stop()
        begun = cluster.clock.monotonic()
        await controllers.run()
        assert cluster.clock.monotonic() - begun < 0.1
