"""Tests that the content of one object does not affect others, on the embedded API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, CountingTransport, NodelessCluster

from kuberuntime.client.transport import Request, StreamResponse
from kuberuntime.objects import meta
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, EVENTS, PODS
from kuberuntime.serving.metrics import Metrics
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.kinds.managedkinds import MANAGED

pytestmark = pytest.mark.virtual_time


class Verbatim(CountingTransport):
    """Sends `data` byte for byte, as kube-apiserver does."""

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        async with super().stream(request) as response:
            yield StreamResponse(response.status, response.headers, _verbatim(response.chunks))


async def _verbatim(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk.replace(b'"half a surrogate pair"', b'"\\ud800"')


async def comes_up(cluster: NodelessCluster, name: str) -> bool:
    """Create a LeaderWorkerSet. Return whether it becomes available."""
    await cluster.bring_up(builders.leaderworkerset_object(name=name))
    return meta.is_condition_true(await cluster.get(LEADERWORKERSETS, name), "Available")


async def test_size_of_thousands_of_digits_does_not_block_others(cluster: NodelessCluster) -> None:
    async with cluster.managed():
        assert await comes_up(cluster, "web")
        size = {"metadata": {"annotations": {labels.SIZE: "9" * 4301}}}
        await cluster.patch(size, "web-0", resource=PODS)
        assert await comes_up(cluster, "other")
    async with cluster.managed():
        assert await comes_up(cluster, "later")


async def test_unreadable_object_is_reported_and_blocks_no_others() -> None:
    cluster, metrics = NodelessCluster(), Metrics()
    cluster.transport = Verbatim(cluster.server, "manager")
    cluster.instruments = MANAGED.instruments(metrics)
    async with cluster.running(), cluster.managed():
        assert await comes_up(cluster, "web")
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": "bad", "namespace": NAMESPACE, "labels": {labels.NAME: "web"}},
            "data": {"a": "half a surrogate pair"},
            "revision": 7,
        }
        await cluster.client.create(CONTROLLER_REVISIONS, revision)
        assert await comes_up(cluster, "other")
        assert b'lws_ignored_objects_total{resource="controllerrevisions.apps"} 1.0' in metrics.render()
        events = [one for one in await cluster.objects(EVENTS) if one["reason"] == "IgnoredObject"]
        assert [(one["regarding"]["name"], one["related"]["name"]) for one in events] == [("web", "bad")]
