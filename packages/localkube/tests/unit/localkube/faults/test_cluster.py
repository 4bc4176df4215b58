"""Tests the targets of faults on a cluster with simulated pods, and the state after the faults."""
# ruff: noqa: ASYNC110 - controllers and kubelet take their time

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from testkit import objects

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import BadRequestError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from localkube.apiserver.server import FAULTS_PATH
from localkube.cluster import Nodes
from localkube.faults import nodefaults
from localkube.testing import temporary

NODE = ObjectKey("", "node-0")
SPEC = {"terminationGracePeriodSeconds": 0}


async def begin(client: Client, kind: str, *targets: str, seconds: float = 60, **more: object) -> int:
    """Request a fault. Return its number."""
    body = {"kind": kind, "seconds": seconds, "targets": targets} | more
    response = await client.send(Request("POST", FAULTS_PATH, body=json.dumps(body).encode()))
    return int(json.loads(response.body)["number"])


async def undo_all(client: Client) -> None:
    """Stop all faults."""
    await client.send(Request("DELETE", FAULTS_PATH))


async def ready(client: Client, *names: str) -> None:
    """Wait until pods are ready."""
    for name in names:
        while not meta.is_condition_true(await client.get(PODS, ObjectKey("default", name)), "Ready"):
            await asyncio.sleep(0.02)


async def names(client: Client) -> Sequence[str]:
    """Return the names of all pods."""
    return [meta.name(one) for one in (await client.list(PODS)).items]


async def test_killed_container_restarts_and_a_pod_without_is_named() -> None:
    async with temporary("modelled pods") as cluster:
        client = cluster.client()
        await client.create(PODS, objects.pod("a", spec=SPEC))
        await ready(client, "a")
        await begin(client, "kill", "default/a")
        while (await client.get(PODS, ObjectKey("default", "a")))["status"]["containerStatuses"][0][
            "restartCount"
        ] == 0:
            await asyncio.sleep(0.02)
        await client.create(PODS, objects.pod("never", node="", spec=SPEC | {"schedulingGates": [{"name": "a"}]}))
        await client.create(PODS, objects.pod("host", spec=SPEC | {"hostNetwork": True}))
        await ready(client, "host")
        for name, message in (
            ("gone", "pod default/gone does not exist"),
            ("never", "pod default/never does not have an IP address"),
            ("host", "pod default/host uses the host network"),
        ):
            with pytest.raises(BadRequestError, match=message):
                await begin(client, "kill", f"default/{name}")


async def test_unsupported_fault_is_rejected_without_effect() -> None:
    async with temporary("modelled pods") as cluster:
        client = cluster.client()
        await client.create(PODS, objects.pod("a", spec=SPEC))
        await ready(client, "a")
        for kind, more in (("partition", {}), ("delay", {"amount": 0.1}), ("fill", {"path": "/tmp"})):
            with pytest.raises(
                BadRequestError, match="simulated processes do not have network packets or file systems"
            ):
                await begin(client, kind, "default/a", **more)
        listed = await client.send(Request("GET", FAULTS_PATH))
        assert json.loads(listed.body)["items"] == []


@pytest.mark.parametrize("kind", ["drain", "lose-node"])
async def test_drained_node_accepts_pods_after_the_fault(kind: str) -> None:
    async with temporary("modelled pods", nodes=Nodes(taints=("a=b:NoSchedule",))) as cluster:
        client = cluster.client()
        before = await client.get(NODES, NODE)
        await client.create(PODS, objects.pod("a", spec=SPEC))
        await ready(client, "a")
        await begin(client, kind, "node-0")
        away = await client.get(NODES, NODE)
        assert meta.spec(away)["unschedulable"] is True
        assert any(taint["key"] == nodefaults.LOST["key"] for taint in meta.spec(away)["taints"]) == (
            kind == "lose-node"
        )
        while await names(client):
            await asyncio.sleep(0.02)
        with pytest.raises(BadRequestError, match="node node-0 is already unschedulable"):
            await begin(client, kind, "node-0")
        with pytest.raises(BadRequestError, match="node node-7 does not exist; available: node-0"):
            await begin(client, kind, "node-7")
        await undo_all(client)
        while meta.spec(after := await client.get(NODES, NODE)) != meta.spec(before):
            await asyncio.sleep(0.02)  # the unschedulable taint is removed shortly afterwards
        assert nodefaults.MARK not in meta.annotations(after)


async def test_restarted_cluster_removes_faults_from_nodes() -> None:
    async with temporary("modelled pods") as cluster:
        client = cluster.client()
        left = {"metadata": {"annotations": {nodefaults.MARK: "drain"}}, "spec": {"unschedulable": True}}
        await client.patch(NODES, NODE, left, kind="merge")
        await nodefaults.restore_nodes(client)
        assert not meta.spec(await client.get(NODES, NODE)).get("unschedulable")
        own = {"spec": {"unschedulable": True}}
        await client.patch(NODES, NODE, own, kind="merge")
        await nodefaults.restore_nodes(client)
        # the node was cordoned by a user, and not by a fault
        assert meta.spec(await client.get(NODES, NODE))["unschedulable"] is True


async def test_cluster_without_pods_serves_no_faults() -> None:
    async with temporary("controllers") as cluster:
        with pytest.raises(NotFoundError):
            await begin(cluster.client(), "kill", "default/a")


async def test_manager_fault_restarts_the_manager() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def manager() -> AsyncIterator[None]:
        seen.append("there")
        yield
        seen.append("away")

    async with temporary("modelled pods") as cluster:
        client = cluster.client()
        with pytest.raises(BadRequestError, match="manager: not part of this cluster"):
            await begin(client, "manager")
        async with cluster.run_manager(manager):
            assert seen == ["there"]
            await begin(client, "manager")
            assert seen == ["there", "away"]
            with pytest.raises(BadRequestError, match="manager: already unavailable"):
                await begin(client, "manager")
            await undo_all(client)
            while len(seen) == 2:
                await asyncio.sleep(0)
            assert seen == ["there", "away", "there"]


async def test_manager_that_cannot_restart_blocks_no_other_fault() -> None:
    """A different manager starts while the API server is unavailable."""
    free = asyncio.Event()

    @asynccontextmanager
    async def manager() -> AsyncIterator[None]:
        await free.wait()
        yield

    async with temporary("modelled pods") as cluster:
        client = cluster.client()
        free.set()
        async with asyncio.timeout(20), cluster.run_manager(manager):
            free.clear()
            for _ in range(2):
                await begin(client, "manager")
                await begin(client, "apiserver")
                await undo_all(client)
            await begin(client, "manager")
