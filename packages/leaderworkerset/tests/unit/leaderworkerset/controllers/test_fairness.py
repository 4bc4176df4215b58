"""Tests that a busy namespace does not delay others, on the embedded API server with a request quota."""

import asyncio
import re

import pytest
from tests import builders
from tests.simulation import product
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster

from kuberuntime.client.client import Client
from kuberuntime.client.ratelimit import LimitedTransport, TokenBucket
from kuberuntime.client.transport import Request, Response, Transport
from kuberuntime.clock import Clock
from kuberuntime.objects.resources import NAMESPACES, STATEFULSETS
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = pytest.mark.virtual_time

RATE = 10
LATENCY = 0.02
BUSY = 40
"""The number of LeaderWorkerSets in the busy namespace. Their writes use the quota of 15 s."""

EDITS = 3


def now() -> float:
    return asyncio.get_running_loop().time()


class Slow(LimitedTransport):
    """Limits and delays requests. Records the first write for each LeaderWorkerSet."""

    def __init__(self, inner: Transport, clock: Clock) -> None:
        super().__init__(inner, TokenBucket(RATE, RATE), clock)
        self.first: dict[str, float] = {}

    async def request(self, request: Request) -> Response:
        await asyncio.sleep(LATENCY)
        response = await super().request(request)
        if request.method != "GET":
            for name in re.findall(rb"calm\d+", request.path.encode() + request.body):
                self.first.setdefault(name.decode(), now())
        return response


async def create(cluster: NodelessCluster, namespace: str, name: str) -> None:
    """Create a LeaderWorkerSet that needs a revision, a StatefulSet, a Service and a status."""
    made = builders.leaderworkerset_object(name=name)
    of_set = {"metadata": {"name": name, "namespace": namespace}, "spec": made["spec"] | {"replicas": 0}}
    await cluster.client.create(LEADERWORKERSETS, made | of_set)


@pytest.mark.slow
async def test_single_request_is_served_next_to_a_busy_namespace() -> None:
    cluster = NodelessCluster()
    transport = Slow(cluster.transport, cluster.clock)
    async with cluster.running():
        for namespace in ("busy", "calm"):
            await cluster.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        for number in range(BUSY):
            await create(cluster, "busy", f"b{number}")
        async with product.controllers(Client(transport), cluster.clock):
            created: dict[str, float] = {}
            for number in range(EDITS):
                await asyncio.sleep(2)
                created[f"calm{number}"] = now()
                await create(cluster, "calm", f"calm{number}")
            await asyncio.sleep(2)
            assert len((await cluster.client.list(STATEFULSETS, namespace="busy")).items) < BUSY
            waited = [transport.first.get(name, now()) - since for name, since in created.items()]
            assert max(waited) < 1, waited
            await asyncio.sleep(60)
            assert len((await cluster.client.list(STATEFULSETS, namespace="busy")).items) == BUSY
