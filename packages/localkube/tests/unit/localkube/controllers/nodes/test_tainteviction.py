"""Tests how long a pod can remain on a node with NoExecute taints."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest
from testkit.virtualtime import VirtualClock
from tests.unit.localkube.controllers.objects import build_node, build_pod

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from kuberuntime.plan import Delete, Patch
from localkube.apiserver import builtin
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store
from localkube.controllers.nodes.podgc import BY_NODE, node_index
from localkube.controllers.nodes.tainteviction import TaintEvictionController, toleration_time

pytestmark = pytest.mark.virtual_time

POOL: JSONObject = {"key": "pool", "value": "gpu", "effect": "NoExecute"}
LOST: JSONObject = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def toleration(key: str, seconds: float | None = None, **fields: str) -> JSONObject:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": "NoExecute"} | fields | limit


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([], [], None, id="no taint"),
        pytest.param([POOL], [], 0, id="not tolerated"),
        pytest.param([POOL], [toleration("pool")], None, id="tolerated for ever"),
        pytest.param([POOL], [toleration("pool", 5)], 5, id="tolerated for a while"),
        pytest.param([POOL], [toleration("pool", 5), toleration("", 3)], 3, id="the shortest of those that fit"),
        pytest.param([POOL], [toleration("pool", -1)], 0, id="a time that is over"),
        pytest.param([POOL], [toleration("pool", effect="NoSchedule")], 0, id="another effect"),
        pytest.param([POOL], [{"key": "pool", "value": "cpu", "effect": "NoExecute"}], 0, id="another value"),
        pytest.param([POOL, LOST], [toleration("pool")], 0, id="one of two not tolerated"),
        pytest.param([POOL, LOST], [toleration("pool"), toleration(LOST["key"], 300)], 300, id="both tolerated"),
    ],
)
def test_pod_stays_while_it_tolerates_all_taints(
    taints: list[JSONObject], tolerations: list[JSONObject], expected: float | None
) -> None:
    pod = build_pod("web-0", {"spec": {"tolerations": tolerations}})
    assert toleration_time(pod, taints) == (None if expected is None else timedelta(seconds=expected))


POD = ObjectKey("default", "web-0")
DAYS = 86400.0


@dataclass
class TaintedNode:
    """A pod that tolerates the taint of its node for one minute, and the controller that evicts it."""

    clock: VirtualClock
    client: Client
    eviction: TaintEvictionController

    async def left(self) -> timedelta | None:
        """Return the time until the controller evicts the pod, or None if it evicts the pod now."""
        plan = await self.eviction.plan(POD)
        if plan.actions:
            mark, action = plan.actions
            assert isinstance(mark, Patch)
            assert mark.patch["status"]["conditions"][0]["reason"] == "DeletionByTaintManager"
            assert isinstance(action, Delete)
            return None
        assert plan.requeue_after is not None
        return timedelta(seconds=round(plan.requeue_after))


def informer(client: Client) -> tuple[Informer, Informer]:
    return Informer(client, PODS, indexes={BY_NODE: node_index}), Informer(client, NODES)


@asynccontextmanager
async def world() -> AsyncIterator[TaintedNode]:
    clock = VirtualClock()
    server = ApiServer(Store(), builtin.kinds(), clock)
    await server.start()
    client = Client(InProcessTransport(server, "test"))
    node = build_node("n")
    await client.create(NODES, {"apiVersion": "v1", "kind": "Node"} | node | {"spec": {"taints": [POOL]}})
    container = {"name": "main", "image": "none"}
    spec = {"nodeName": "n", "containers": [container], "tolerations": [toleration("pool", 60)]}
    metadata = {"name": POD.name, "namespace": POD.namespace}
    await client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    pods, nodes = informer(client)
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one.run()) for one in (pods, nodes)]
        for one in (pods, nodes):
            await one.wait_synced()
        yield TaintedNode(clock, client, TaintEvictionController(pods=pods, nodes=nodes, clock=clock))
        for task in running:
            task.cancel()
    await server.close()


@pytest.mark.parametrize("days", [400, -400])
async def test_clock_jump_neither_evicts_nor_keeps_pods(days: float) -> None:
    async with world() as w:
        assert await w.left() == timedelta(seconds=60)
        w.clock.jump = days * DAYS
        assert await w.left() == timedelta(seconds=60)
        await asyncio.sleep(40)
        assert await w.left() == timedelta(seconds=20)
        w.clock.jump = 0
        await asyncio.sleep(20.5)
        assert await w.left() is None


async def test_toleration_time_restarts_for_a_recreated_pod() -> None:
    async with world() as w:
        assert await w.left() == timedelta(seconds=60)
        await asyncio.sleep(30)
        old = await w.client.get(PODS, POD)
        await w.client.delete(PODS, POD, grace_period=0)
        fresh = {name: old[name] for name in ("apiVersion", "kind", "spec")}
        await w.client.create(PODS, fresh | {"metadata": {"name": POD.name, "namespace": POD.namespace}})
        await asyncio.sleep(1)  # in virtual time, so that all remaining work completes first
        assert meta.uid(w.eviction.pods.store.get(POD) or old) != meta.uid(old)
        assert await w.left() == timedelta(seconds=60)
