"""Tests which revisions are preserved in a cluster, and which ones clients can read."""

from typing import Any

import pytest
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, NodelessCluster

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.history import revisionhistory

pytestmark = pytest.mark.virtual_time

LIMIT = 3


async def revise(cluster: NodelessCluster, image: str) -> None:
    """Update the image."""
    await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template(image)})
    await cluster.settle(120)


async def numbers(cluster: NodelessCluster, selector: str) -> list[int]:
    found = await cluster.client.list(CONTROLLER_REVISIONS, namespace=NAMESPACE, label_selector=selector)
    own = [one for one in found.items if (meta.controller_of(one) or {}).get("kind") == LEADERWORKERSETS.kind]
    return sorted(int(one["revision"]) for one in own)


async def seen(cluster: NodelessCluster) -> tuple[list[int], list[int]]:
    """Return the revision numbers that clients count, and the revision numbers in the history."""
    return await numbers(cluster, f"{labels.NAME}=web"), await numbers(cluster, revisionhistory.selector("web"))


def limited(**fields: Any) -> JSONObject:
    metadata = {"annotations": {labels.REVISION_HISTORY_LIMIT: str(LIMIT)}}
    return builders.leaderworkerset_object(image="app:1", replicas=1, size=1, metadata=metadata, **fields)


@pytest.mark.slow
async def test_clients_see_one_revision_while_others_are_kept(cluster: NodelessCluster) -> None:
    async with cluster.managed():
        await cluster.bring_up(limited())
        assert await seen(cluster) == ([1], [])
        for number in range(2, 7):
            await revise(cluster, f"app:{number}")
            assert await seen(cluster) == ([number], list(range(max(1, number - LIMIT), number)))


async def test_reused_revision_leaves_the_history(cluster: NodelessCluster) -> None:
    async with cluster.managed():
        await cluster.bring_up(limited())
        await revise(cluster, "app:2")
        await revise(cluster, "app:1")
        assert await seen(cluster) == ([3], [2])


async def test_aborted_rollout_is_in_the_history(cluster: NodelessCluster) -> None:
    async with cluster.managed():
        await cluster.bring_up(limited())
        cluster.ready_pods = lambda _: False
        await revise(cluster, "app:broken")
        assert await seen(cluster) == ([1, 2], [])
        cluster.ready_pods = lambda _: True
        await revise(cluster, "app:1")
        assert await seen(cluster) == ([3], [2])


async def test_history_causes_no_writes_at_rest_and_ends_with_its_set(cluster: NodelessCluster) -> None:
    async with cluster.managed():
        await cluster.bring_up(limited())
        await revise(cluster, "app:2")
        before = dict(cluster.transport.writes)
        await cluster.settle(600)
        assert dict(cluster.transport.writes) == before
        await cluster.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "web"))
        await cluster.settle()
        assert await seen(cluster) == ([], [])
