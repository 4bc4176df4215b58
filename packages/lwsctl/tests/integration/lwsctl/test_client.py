"""Tests all operations of the Python client on both clusters, with and without an event loop."""

import asyncio
from contextlib import aclosing

import pytest
from tests.integration.clusters.space import LiveScenario

from lwsctl.client import AsyncClient, Client, Container, Manifest, NotFoundError, Verdict, View, WaitTimeoutError

LIMIT = 60.0
WEB = Manifest(name="web", worker=Container(image="app:1", command=["sleep", "600"]), groups=1, size=2)
STUCK = Manifest(
    name="stuck",
    worker=Container(image="app:1", command=["sleep", "600"], resources={"cpu": "1000"}),
    labels={"team": "search"},
)


async def test_client_applies_waits_scales_and_deletes(space: LiveScenario) -> None:
    def script() -> None:
        config = str(space.cluster.kubeconfig)
        with Client(kubeconfig=config, namespace=space.namespace) as cluster:
            with pytest.raises(NotFoundError):
                cluster.wait("web")
            cluster.apply(WEB)
            ready = cluster.wait("web", timeout=LIMIT)
            assert [rank.pod for rank in ready.groups[0].ranks] == ["web-0", "web-0-1"]
            assert cluster.wait("web", timeout=0).is_ready
            cluster.scale("web", 2)
            cluster.wait("web", "replicas=2", timeout=LIMIT)
            cluster.apply(WEB)
            seen = [view.desired for view in cluster_until(cluster, 1)]
            assert seen[-1] == 1
            cluster.delete("web", timeout=LIMIT)
            cluster.delete("web")
            assert cluster.names() == []
            assert list(cluster.watch("web")) == []
        with pytest.raises(RuntimeError, match="the client is closed"):
            cluster.names()
        notebook = Client(kubeconfig=config, namespace=space.namespace)
        assert notebook.names() == []
        notebook.close()
        notebook.close()
        with pytest.raises(RuntimeError, match="the client is closed"):
            notebook.names()

    await asyncio.to_thread(script)


def cluster_until(cluster: Client, ready: int) -> list[View]:
    """Watch until this number of groups exists and is ready. Then stop the watch."""
    seen = []
    for view in cluster.watch("web"):
        seen.append(view)
        if view.ready == view.desired == ready and len(view.groups) == ready:
            break
    return seen


async def test_wait_that_times_out_names_the_reason(space: LiveScenario) -> None:
    client = AsyncClient.over(space.client, space.namespace)
    await client.apply(STUCK)
    await space.eventually(lambda: client.get("stuck"), lambda view: "cpu" in view.groups[0].ranks[0].why)
    with pytest.raises(
        WaitTimeoutError, match=r"^timed out waiting for stuck after 0 s: 0 of 1 group ready; stuck-0 is Pending: .*cpu"
    ):
        await client.wait("stuck", timeout=0)
    with pytest.raises(
        WaitTimeoutError, match=r"^timed out waiting for stuck after 2 s: 0 of 1 group ready; stuck-0 is Pending: .*cpu"
    ):
        await client.wait("stuck", timeout=2)
    async with aclosing(client.watch("stuck")) as views:
        first = await anext(views)
        assert (first.ready, first.desired) == (0, 1)
        await client.delete("stuck", timeout=LIMIT)
        async for _ in views:
            pass
    assert await client.names() == []


async def test_client_explains_a_set_and_reads_its_events(space: LiveScenario) -> None:
    client = AsyncClient.over(space.client, space.namespace)
    await client.apply(STUCK)
    await space.eventually(lambda: client.explain("stuck"), lambda diagnosis: diagnosis.code == "LWS-E036")
    diagnosis = await client.explain("stuck/0/0")
    assert diagnosis.verdict is Verdict.STUCK
    assert str(diagnosis).startswith("stuck/0/0 is stuck (LWS-E036): no node has enough cpu for pod stuck-0")
    assert "  next: " in str(diagnosis)
    await space.eventually(lambda: client.events("stuck"), lambda events: any(event.is_warning for event in events))
    (first, *_) = [event for event in await client.events("stuck/0/0") if event.is_warning]
    assert (first.group, first.rank, first.reason) == (0, 0, "FailedScheduling")
    with pytest.raises(NotFoundError, match="stuck/7 has no pod"):
        await client.explain("stuck/7")
    with pytest.raises(ValueError, match="is not a valid path"):
        await client.explain("stuck/x")
    with pytest.raises(RuntimeError, match="the client has no connection"):
        await client.exec("stuck", ["true"])
