"""The manager as it ships, with maintenance enabled and the rights that it is installed with: nodes are emptied (ADR 23)."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest
from tests.integration.clusters.cluster import Cluster, transport
from tests.integration.clusters.embedded import embedded_cluster
from tests.integration.clusters.kubernetes import KubernetesCluster
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LIMIT, Space, space_of
from tests.integration.clusters.state import State
from tests.integration.manager.deployed import deployed
from tests.integration.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels

pytestmark = pytest.mark.slow

CONFIGURATION: Final = {"maintenance": {"enable": True}}
GROUPS: Final = 4


def at_most_one_is_away(state: State) -> None:
    """Expect that all leaders but one are there and stay: with the default strategy one group may be unavailable."""
    staying = [name for name in leaders() if name in state.pods and not meta.is_deleting(state.pods[name])]
    assert len(staying) >= GROUPS - 1, staying


def leaders() -> list[str]:
    return [f"web-{index}" for index in range(GROUPS)]


async def nodes_of(space: Space) -> dict[str, str]:
    """Return the nodes of the pods that are not deleted, by the names of these."""
    listing = await space.client.list(PODS, namespace=space.namespace)
    return {meta.name(pod): meta.spec(pod).get("nodeName", "") for pod in listing.items if not meta.is_deleting(pod)}


async def leaders_created(space: Space) -> dict[str, int]:
    """Return how many leaders of each name there were so far."""
    seen: dict[str, set[str]] = {}
    for change in space.changes:
        if change.object.get("kind") == PODS.kind and meta.name(change.object) in leaders():
            seen.setdefault(meta.name(change.object), set()).add(meta.uid(change.object))
    return {name: len(uids) for name, uids in seen.items()}


async def live(cluster: Cluster, directory: Path) -> None:
    """Cordon a node, ask for moves, and kill the manager: each group with a pod there moves once; then open the node."""
    replica = Replica(directory, "manager", directory / "manager.kubeconfig", dict(CONFIGURATION))
    client = Client(transport(cluster, "tests"))
    async with deployed(cluster, replica) as manager, space_of(cluster, manager, client) as space:
        await space.create(lws(replicas=GROUPS, size=2))
        await space.settled()
        node = (await nodes_of(space))["web-1-1"]
        affected = {name.split("-")[1] for name, place in (await nodes_of(space)).items() if place == node}
        space.always(at_most_one_is_away)
        await space.cordon(node)
        try:
            await space.patch({"metadata": {"annotations": {labels.MOVE_OFF_CLOSED_NODES: "on"}}})
            await manager.kill()
            await manager.start()
            async with asyncio.timeout(LIMIT * 2):
                while node in (await nodes_of(space)).values():  # noqa: ASYNC110 - as an operator waits
                    await asyncio.sleep(0.2)
            state = await space.settled()
            counts = await leaders_created(space)
            assert counts == {f"web-{index}": 1 + (str(index) in affected) for index in range(GROUPS)}
            assert node not in (await nodes_of(space)).values()
            assert not state.notes("RecreateGroup")
        finally:
            await space.cordon(node, unschedulable=False)
        await space.settled()
        assert await leaders_created(space) == counts
        assert meta.uid(await space.client.get(PODS, ObjectKey(space.namespace, "web-1"))) == meta.uid(
            state.pods["web-1"]
        )
    await client.close()
    assert "Traceback" not in replica.log.read_text()
    assert "forbidden" not in replica.log.read_text()


async def test_groups_leave_a_closed_node_one_after_the_other_on_the_embedded_cluster(
    tmp_path: Path, runner: Any
) -> None:
    async with embedded_cluster(tmp_path / "cluster") as cluster:
        await live(cluster, tmp_path)


@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
async def test_groups_leave_a_closed_node_one_after_the_other_on_a_real_control_plane(
    cluster: KubernetesCluster, tmp_path: Path
) -> None:
    await live(cluster, tmp_path)
