"""The manager as it ships, with moves and the rights that it is installed with: groups leave a cordoned node (ADR 23)."""

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
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import groupname, labels

pytestmark = pytest.mark.slow

CONFIGURATION: Final = {"maintenance": {"enable": True}}
GROUPS: Final = 4


def leaders(state: State) -> dict[str, str]:
    """Return the UIDs of the leaders by the label of their group."""
    return {groupname.label(pod): meta.uid(pod) for pod in state.pods.values() if groupname.is_leader(pod)}


def on_node(state: State, node: str) -> set[str]:
    """Return the labels of the groups with a pod on a node."""
    return {groupname.label(pod) for pod in state.pods.values() if meta.spec(pod).get("nodeName") == node}


def at_most_one_is_away(state: State) -> None:
    """Expect that no second group lacks a pod, as far as pods are ready that are not on their way out."""
    whole = [pod for pod in state.pods.values() if meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod)]
    labelled = [groupname.label(pod) for pod in whole]
    assert sum(labelled.count(label) == 2 for label in set(labelled)) >= GROUPS - 1


async def live(cluster: Cluster, directory: Path) -> None:
    """Cordon the node of a group: nothing without the annotation; with it, its groups move once, one after the other."""
    replica = Replica(directory, "manager", directory / "manager.kubeconfig", dict(CONFIGURATION))
    client = Client(transport(cluster, "tests"))
    async with deployed(cluster, replica) as manager, space_of(cluster, manager, client) as space:
        await space.create(lws(replicas=GROUPS, size=2))
        before = await space.settled()
        space.always(at_most_one_is_away)
        node = meta.spec(before.pods["web-0"])["nodeName"]
        must_move = on_node(before, node)
        await space.cordon(node)
        try:
            await asyncio.sleep(1)
            assert leaders(await space.settled()) == leaders(before)
            await space.patch({"metadata": {"annotations": {labels.MOVE_GROUPS: "true"}}})
            await moved_off(space, node)
        finally:
            await space.cordon(node, unschedulable=False)
        after = await space.settled()
        changed = {label for label, uid in leaders(after).items() if uid != leaders(before)[label]}
        assert changed == must_move
        assert leaders_ever(space) == {label: 2 if label in must_move else 1 for label in leaders(before)}
        revisions = await client.list(CONTROLLER_REVISIONS, namespace=space.namespace)
        assert not [one for one in revisions.items if labels.RECREATIONS in meta.annotations(one)]
    await client.close()
    assert "Traceback" not in replica.log.read_text()
    assert "forbidden" not in replica.log.read_text()


async def moved_off(space: Space, node: str) -> None:
    """Wait until no group has a pod on the node, and all groups are ready."""

    def is_empty(state: State) -> None:
        assert not on_node(state, node)

    await space.until(is_empty, limit=LIMIT * 3)
    await space.settled()


def leaders_ever(space: Space) -> dict[str, int]:
    """Return how many leaders each group had."""
    found: dict[str, set[str]] = {}
    for change in space.changes:
        if change.object.get("kind") == "Pod" and groupname.is_leader(change.object):
            found.setdefault(groupname.label(change.object), set()).add(meta.uid(change.object))
    return {label: len(uids) for label, uids in found.items()}


async def test_groups_leave_a_cordoned_node_on_the_embedded_cluster(tmp_path: Path, runner: Any) -> None:
    async with embedded_cluster(tmp_path / "cluster") as cluster:
        await live(cluster, tmp_path)


@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
async def test_groups_leave_a_cordoned_node_on_a_real_control_plane(cluster: KubernetesCluster, tmp_path: Path) -> None:
    await live(cluster, tmp_path)
