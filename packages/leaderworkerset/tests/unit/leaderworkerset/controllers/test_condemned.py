"""Tests that a failed group is not ready until it is recreated, regardless of its pod statuses."""

import pytest
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NodelessCluster

from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta
from leaderworkerset.api.resources import LEADERWORKERSETS

pytestmark = [pytest.mark.slow, pytest.mark.virtual_time]


async def counted(cluster: NodelessCluster) -> tuple[int, bool]:
    """Return the number of ready groups, and whether the LeaderWorkerSet is `Available`."""
    lws = await cluster.get(LEADERWORKERSETS, "web")
    return int(meta.status(lws).get("readyReplicas") or 0), meta.is_condition_true(lws, "Available")


async def test_group_is_not_ready_when_its_record_is_rejected(cluster: NodelessCluster) -> None:
    inner = cluster.transport.request

    async def refuse(request: Request) -> Response:
        if request.method == "PATCH" and "-recreations" in request.path:
            return Response(
                status=403, headers={}, body=b'{"kind":"Status","code":403,"reason":"Forbidden","message":"refused"}'
            )
        return await inner(request)

    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(replicas=2))
        await cluster.fail("web-0-1")
        await cluster.settle(5)
        assert await counted(cluster) == (2, True)
        cluster.transport.request = refuse  # type: ignore[method-assign]
        await cluster.fail("web-0-1")
        await cluster.settle(5)
        assert await counted(cluster) == (1, False)
        cluster.transport.request = inner  # type: ignore[method-assign]
        await cluster.settle(600)
        assert await counted(cluster) == (2, True)
