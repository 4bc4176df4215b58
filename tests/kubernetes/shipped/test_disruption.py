"""Tests evictions of groups with disruption budgets by the shipped manager with its permissions (ADR 22)."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from testkit.clusters.cluster import ClusterBackend
from testkit.clusters.embedded import embedded_cluster
from testkit.clusters.kubernetes import KubernetesCluster
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LIMIT, LiveScenario, space_of
from tests.integration.clusters.state import State
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS, PODS
from leaderworkerset.api import groupname, labels
from leaderworkerset.capabilities.disruption.disruptionsettings import STARTING

pytestmark = pytest.mark.slow

CONFIGURATION: Final = {"disruptionBudgets": {"enable": True, "budget": "rollout"}}
TOO_MANY: Final = 429
GROUPS: Final = ["0", "1", "2", "3"]


async def budgets(space: LiveScenario, check: Callable[[dict[str, JSONObject]], Any]) -> dict[str, JSONObject]:
    """Wait until the budgets satisfy the condition. Return them by group label."""
    async with asyncio.timeout(LIMIT):
        while True:
            listing = await space.client.list(POD_DISRUPTION_BUDGETS, namespace=space.namespace)
            found = {groupname.group_label(one): one for one in listing.items}
            if check(found):
                return found
            await asyncio.sleep(0.1)


def open_groups(found: dict[str, JSONObject]) -> list[str]:
    """Return the groups for which the API server allows evictions."""
    return sorted(label for label, one in found.items() if meta.status(one).get("disruptionsAllowed"))


def is_at_rest(found: dict[str, JSONObject]) -> bool:
    """Return whether each group has a budget, all budgets are observed, and one budget allows an eviction."""
    return sorted(found) == GROUPS and all(map(meta.is_observed, found.values())) and len(open_groups(found)) == 1


def is_marked(pod: JSONObject) -> bool:
    """Return whether autoscalers must not evict a pod."""
    found = meta.annotations(pod)
    return found.get(labels.SAFE_TO_EVICT) == "false" and found.get(labels.KARPENTER_DO_NOT_DISRUPT) == "true"


def are_unmarked(state: State) -> None:
    """Assert that no pod is marked."""
    assert not any(map(is_marked, state.pods.values()))


async def refusal(space: LiveScenario, pod: str) -> str:
    """Try to evict a pod. Return the reason for a rejection, or an empty string if it is evicted."""
    try:
        await space.request_eviction(pod)
    except APIError as error:
        if error.code != TOO_MANY:
            raise
        return error.message
    return ""


async def live(cluster: ClusterBackend, directory: Path) -> None:
    """Evict protected and unprotected groups, drain a node, kill the manager, and stop the protection."""
    replica = Replica(directory, "manager", directory / "manager.kubeconfig", dict(CONFIGURATION))
    client = Client(cluster.transport("tests"))
    async with deployed(cluster, replica) as manager, space_of(cluster, manager, client) as space:
        before = await space.bring_up(lws(replicas=4, size=2, annotations={labels.DO_NOT_DISRUPT: STARTING}))
        await space.until(are_unmarked)
        assert any(is_marked(change.object) for change in space.changes)
        evicted = f"web-{await open_one_after_the_other(space)}"

        def is_recreated(state: State) -> None:
            assert meta.uid(state.pods[evicted]) != meta.uid(before.pods[evicted])

        await space.until(is_recreated)
        await space.settled()
        await empty_the_node_of_a_closed_group(space, manager)
        await space.patch({"metadata": {"annotations": {labels.DISRUPTION_BUDGET: "off"}}})
        await budgets(space, lambda found: not found)
        await space.patch({"metadata": {"annotations": {labels.DISRUPTION_BUDGET: "4"}}})
        await budgets(space, lambda found: open_groups(found) == GROUPS)
        await space.delete("web")
        await budgets(space, lambda found: not found)
    await client.close()
    assert "Traceback" not in replica.log.read_text()
    assert "forbidden" not in replica.log.read_text()


async def open_one_after_the_other(space: LiveScenario) -> str:
    """Evict the unprotected group, but no other group while it is unavailable. Return its index."""
    found = await budgets(space, is_at_rest)
    (first,) = open_groups(found)
    others = [label for label in GROUPS if label != first]
    assert "Cannot evict pod as it would violate the pod's disruption budget" in await refusal(
        space, f"web-{others[0]}"
    )
    assert await refusal(space, f"web-{first}-1") == ""
    for label in others:
        assert await refusal(space, f"web-{label}-1") != ""
    return first


async def empty_the_node_of_a_closed_group(space: LiveScenario, manager: Any) -> None:
    """Cordon the node of a protected group and kill the manager. Its budget opens after the other one closes."""
    found = await budgets(space, is_at_rest)
    pods = {
        meta.name(pod): meta.spec(pod)["nodeName"]
        for pod in (await space.client.list(PODS, namespace=space.namespace)).items
    }
    (first,) = open_groups(found)
    of_first = {node for name, node in pods.items() if name.split("-")[1] == first}
    name, node = next((name, node) for name, node in pods.items() if node not in of_first)
    label = name.split("-")[1]
    await manager.kill()
    await space.cordon(node)
    try:
        await manager.start()
        await budgets(space, lambda found: label in open_groups(found) or first not in open_groups(found))
        async with asyncio.timeout(LIMIT * 3):
            while await refusal(space, name):  # noqa: ASYNC110 - as drains do
                await asyncio.sleep(0.5)
    finally:
        await space.cordon(node, unschedulable=False)
    await space.settled()
    await budgets(space, is_at_rest)


async def test_groups_are_evicted_one_by_one_on_the_embedded_cluster(tmp_path: Path, runner: Any) -> None:
    async with embedded_cluster(tmp_path / "cluster") as cluster:
        await live(cluster, tmp_path)


@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
async def test_groups_are_evicted_one_by_one_on_a_real_control_plane(
    cluster: KubernetesCluster, tmp_path: Path
) -> None:
    await live(cluster, tmp_path)
