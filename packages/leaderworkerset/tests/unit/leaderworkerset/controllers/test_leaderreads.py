"""Tests that an update uses the leaders' state in the API server, even if the caches are outdated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace
from tests import builders
from tests.unit.leaderworkerset.controllers.cluster import NAMESPACE, CountingTransport, NodelessCluster

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response, StreamResponse
from kuberuntime.errors import ConnectionFailedError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, STATEFULSETS, Resource
from leaderworkerset.api import groupname, labels
from leaderworkerset.controllers import leaderreads
from leaderworkerset.core.leaderworkerset import outdatedleaders
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts

pytestmark = pytest.mark.virtual_time


class LateWatch(CountingTransport):
    """Delays changes of one kind until `on_time` is set.

    Loses the response to the next patch after `lost` is cleared.
    """

    def __init__(self, cluster: NodelessCluster, late: Resource) -> None:
        super().__init__(cluster.server, "manager")
        self.late = late
        self.lost = asyncio.Event()
        self.lost.set()
        self.on_time = asyncio.Event()
        self.on_time.set()

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[StreamResponse]:
        async with super().stream(request) as response:
            is_late = request.path.endswith(f"/{self.late.plural}")
            yield replace(response, chunks=self._held(response.chunks)) if is_late else response

    async def request(self, request: Request) -> Response:
        response = await super().request(request)
        if not self.lost.is_set() and request.method == "PATCH" and f"/{self.late.plural}/" in request.path:
            self.lost.set()
            raise ConnectionFailedError("the answer was lost")
        return response

    async def _held(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            await self.on_time.wait()
            yield chunk


async def partition(cluster: NodelessCluster) -> int:
    return outdatedleaders.read_progress(await cluster.get(STATEFULSETS, "web")).partition


async def image(cluster: NodelessCluster) -> str:
    template = (await cluster.get(STATEFULSETS, "web"))["spec"]["template"]
    return str(template["spec"]["containers"][0]["image"])


async def test_update_waits_until_a_deleted_group_is_observed(cluster: NodelessCluster) -> None:
    cluster.transport = transport = LateWatch(cluster, PODS)
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(image="app:1", replicas=3, size=1))

        transport.on_time.clear()
        await cluster.client.delete(PODS, ObjectKey(NAMESPACE, "web-1"))
        await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:2")})
        await cluster.settle(60)
        assert (await image(cluster), await partition(cluster)) == ("app:2", 3)

        transport.on_time.set()
        await cluster.settle(120)
        assert await partition(cluster) == 0
        pods = await cluster.objects(PODS)
        assert {meta.spec(pod)["containers"][0]["image"] for pod in pods} == {"app:2"}


async def test_revision_is_kept_while_an_update_may_use_it(cluster: NodelessCluster) -> None:
    cluster.transport = transport = LateWatch(cluster, STATEFULSETS)
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(image="app:1", replicas=1, size=1))
        first = await keys(cluster)
        assert len(first) == 1

        transport.on_time.clear()
        transport.lost.clear()
        await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:2")})
        await transport.lost.wait()
        await cluster.edit(leaderWorkerTemplate={"workerTemplate": builders.pod_template("app:1")})
        await cluster.settle(10)
        assert await key_of_leaders(cluster) in await keys(cluster)

        transport.on_time.set()
        await cluster.settle(120)
        assert await keys(cluster) == first == {await key_of_leaders(cluster)}
        assert await image(cluster) == "app:1"


async def keys(cluster: NodelessCluster) -> set[str]:
    """Return the revision keys of the LeaderWorkerSet."""
    found = await cluster.client.list(CONTROLLER_REVISIONS, namespace=NAMESPACE, label_selector=f"{labels.NAME}=web")
    return {
        groupname.revision_key(one)
        for one in found.items
        if (meta.controller_of(one) or {})["kind"] == "LeaderWorkerSet"
    }


async def key_of_leaders(cluster: NodelessCluster) -> str:
    return groupname.revision_key(await cluster.get(STATEFULSETS, "web"))


def group(uid: str, *, is_deleting: bool = False) -> GroupFacts:
    return GroupFacts("web-0", "0", 0, True, "key", None, meta.UID(uid), is_deleting)


async def test_leaders_are_compared_by_uid_unless_terminating(cluster: NodelessCluster) -> None:
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(image="app:1", replicas=2, size=2))
        client, key = Client(cluster.transport), ObjectKey(NAMESPACE, "web")
        uids = [meta.uid(pod) for pod in await cluster.objects(PODS) if meta.name(pod) in {"web-0", "web-1"}]
        known = {str(number): group(uid) for number, uid in enumerate(uids)}
        assert await leaderreads.do_leaders_exist(client, key, known)
        assert await leaderreads.do_leaders_exist(client, key, known | {"2": group("gone", is_deleting=True)})
        assert not await leaderreads.do_leaders_exist(client, key, known | {"2": group("gone")})


async def test_deleted_leader_gets_no_workers_again_and_again(cluster: NodelessCluster) -> None:
    """While the pod cache is outdated, the names of old workers appear to be in use (R-WSTS-2, ADR 45)."""
    cluster.transport = transport = LateWatch(cluster, PODS)
    async with cluster.managed():
        await cluster.bring_up(builders.leaderworkerset_object(replicas=2, size=2))
        before, written = await cluster.uids(STATEFULSETS), transport.writes["POST"]
        transport.on_time.clear()
        await cluster.client.delete(PODS, ObjectKey(NAMESPACE, "web-1"))
        await cluster.client.delete(STATEFULSETS, ObjectKey(NAMESPACE, "web-0"))
        await cluster.settle(60)
        assert transport.writes["POST"] == written
        transport.on_time.set()
        await cluster.settle()
        after = await cluster.uids(STATEFULSETS)
        assert after.keys() == before.keys()
        assert {name for name in after if after[name] != before[name]} == {"web-0", "web-1"}
