"""Tests node maintenance by the shipped manager with its permissions (ADR 23)."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from testkit.clusters.cluster import ClusterBackend
from testkit.clusters.embedded import embedded_cluster
from testkit.clusters.kubernetes import KubernetesCluster
from tests.integration.clusters.objects import lws, pod_template
from tests.integration.clusters.space import LIMIT, LiveScenario, space_of
from tests.integration.clusters.state import State
from tests.integration.lwsctl.explanations import follow, named, remedy, typed
from tests.integration.lwsctl.test_commands import session_of
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NODES, PODS
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.conditions import MOVE_IN_PROGRESS
from lwsctl.cli.commands.rollout.drain import Drain
from lwsctl.cli.commands.rollout.move import GroupMove
from lwsctl.cli.errors import CommandError
from lwsctl.views.selection import Selection

pytestmark = pytest.mark.slow

CONFIGURATION: Final = {"maintenance": {"enable": True}}
GROUPS: Final = 4


def at_most_one_is_away(state: State) -> None:
    """Assert that all leaders except one remain, because the default strategy allows one unavailable group."""
    staying = [name for name in leaders() if name in state.pods and not meta.is_deleting(state.pods[name])]
    assert len(staying) >= GROUPS - 1, staying


def leaders() -> list[str]:
    return [f"web-{index}" for index in range(GROUPS)]


async def nodes_of(space: LiveScenario) -> dict[str, str]:
    """Return the nodes of pods that are not being deleted, by pod name."""
    listing = await space.client.list(PODS, namespace=space.namespace)
    return {meta.name(pod): meta.spec(pod).get("nodeName", "") for pod in listing.items if not meta.is_deleting(pod)}


async def leaders_created(space: LiveScenario) -> dict[str, int]:
    """Return the number of created leaders for each name."""
    seen: dict[str, set[str]] = {}
    for change in space.changes:
        if change.object.get("kind") == PODS.kind and meta.name(change.object) in leaders():
            seen.setdefault(meta.name(change.object), set()).add(meta.uid(change.object))
    return {name: len(uids) for name, uids in seen.items()}


async def live(cluster: ClusterBackend, directory: Path, code: str) -> None:
    """Cordon a node, request moves, and kill the manager.

    Each group on the node moves once. Then uncordon the node.
    """
    replica = Replica(directory, "manager", directory / "manager.kubeconfig", dict(CONFIGURATION))
    client = Client(cluster.transport("tests"))
    async with deployed(cluster, replica) as manager, space_of(cluster, manager, client) as space:
        await space.bring_up(lws(replicas=GROUPS, size=2))
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
        await one_is_never_moved(space, code)
        await one_waits(space)
    await client.close()
    assert "Traceback" not in replica.log.read_text()
    assert "forbidden" not in replica.log.read_text()


async def one_is_never_moved(space: LiveScenario, code: str) -> None:
    """Assert that a keyed group that must remain available is not moved. Cause and command show the reason."""
    rollout, asks = {"maxUnavailable": 0, "maxSurge": 1}, {labels.MOVE_OFF_CLOSED_NODES: "on"}
    await space.create(lws("keys", replicas=1, size=1, rollout=rollout, annotations=asks, groupIdentity="Hash"))

    def is_there(state: State) -> None:
        assert meta.is_condition_true(state.leaderworkersets["keys"], "Available")

    await space.until(is_there)
    node = next(place for name, place in (await nodes_of(space)).items() if name.startswith("keys-"))
    try:
        with pytest.raises(CommandError, match="maxUnavailable is 0"):
            await (await Drain.read(session_of(space), [node])).run(LIMIT)
        told = await named(space, code, "keys")
        assert f"on closed node {node} is never moved" in told.sentence
        await follow(space, told, "or restart the group now")
        async with asyncio.timeout(LIMIT):
            while node in (await nodes_of(space)).values():  # noqa: ASYNC110 - as an operator waits
                await asyncio.sleep(0.2)
        await space.until(is_there)
    finally:
        await space.cordon(node, unschedulable=False)
    await space.delete("keys")
    await space.until(lambda state: _are_gone(state, "keys-"))  # so that their nodes are free for the next set


async def one_waits(space: LiveScenario) -> None:
    """Assert that a group waits for another group. A drain times out, is canceled, and succeeds later."""
    asks = {labels.MOVE_OFF_CLOSED_NODES: "on"}
    await space.create(lws("held", replicas=2, size=1, gated=True, annotations=asks))
    await space.until(lambda state: _run(state, "held-0", "held-1"))
    await space.release("held-1")
    node, before = (await nodes_of(space))["held-1"], await space.get(PODS, "held-1")
    try:
        assert "held: group 1 would move, at most 1 at a time" in await typed(space, "drain", node, "--dry-run")
        assert await is_open(space, node)
        told = await typed(space, "drain", node, "--timeout", "3s", code=124)
        assert f"groups remain on {node} after 3 s: group 1 of {space.namespace}/held; use " in told
        explained = await typed(space, "explain", "held/1", "-n", space.namespace, code=3)
        assert "LWS-E094" in explained
        waits = f"group 1 of held on closed node {node} waits to be moved (waiting for another group to be ready)"
        assert waits in " ".join(explained.split())
        assert f"{node} uncordoned; moved groups do not return automatically" in await typed(
            space, "drain", node, "--cancel"
        )
        await space.until(lambda state: _rests(state, "held"))
        await space.release("held-0")
        await space.until(lambda state: _is_ready(state, "held-0"))
        assert meta.uid(await space.get(PODS, "held-1")) == meta.uid(before)
        assert f"all groups were moved from {node} (1 group in " in await typed(
            space, "drain", node, "--timeout", "60s"
        )
        await space.until(lambda state: _is_another(state, before))
    finally:
        await space.cordon(node, unschedulable=False)


def _are_gone(state: State, prefix: str) -> None:
    assert not [name for name in state.pods if name.startswith(prefix)]


def _run(state: State, *pods: str) -> None:
    assert all(meta.status(state.pods[name]).get("phase") == "Running" for name in pods)


def _is_ready(state: State, pod: str) -> None:
    assert meta.is_condition_true(state.pods[pod], "Ready")


def _is_another(state: State, pod: JSONObject) -> None:
    assert meta.uid(state.pods[meta.name(pod)]) != meta.uid(pod)


def _rests(state: State, name: str) -> None:
    """Assert that no group must be moved from a node."""
    condition = meta.find_condition(state.leaderworkersets[name], MOVE_IN_PROGRESS.type)
    assert condition is not None
    assert condition["status"] == "False"


@remedy("LWS-E095")
async def test_groups_leave_a_closed_node_one_by_one_when_embedded(tmp_path: Path, runner: Any, code: str) -> None:
    async with embedded_cluster(tmp_path / "cluster") as cluster:
        await live(cluster, tmp_path, code)


@remedy("LWS-E095")
@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
async def test_groups_leave_a_closed_node_one_by_one_on_a_real_cluster(
    cluster: KubernetesCluster, tmp_path: Path, code: str
) -> None:
    await live(cluster, tmp_path, code)


MANY: Final = 40
AWAY: Final = 4
POOL: Final = tuple(f"node-{index}" for index in range(8))


def in_pool() -> Any:
    """Return templates of groups that run only on nodes in the pool."""
    named = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(POOL)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [named]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"workerTemplate": pod_template(affinity=affinity)}


def few_are_away(state: State) -> None:
    """Assert that the number of deleted or missing leaders never exceeds the limit of the rollout."""
    staying = [pod for pod in state.pods.values() if groupname.is_leader(pod) and not meta.is_deleting(pod)]
    assert len(staying) >= MANY - AWAY, len(staying)


def groups_on(pods: Iterable[JSONObject], *nodes: str) -> set[str]:
    return {groupname.group_label(pod) for pod in pods if meta.spec(pod).get("nodeName") in nodes}


async def leader_uids(space: LiveScenario) -> dict[str, str]:
    listing = await space.client.list(PODS, namespace=space.namespace)
    return {groupname.group_label(pod): meta.uid(pod) for pod in listing.items if groupname.is_leader(pod)}


async def is_open(space: LiveScenario, *nodes: str) -> bool:
    """Return whether all nodes are schedulable and do not have the manager's taint."""
    found = [meta.spec(await space.client.get(NODES, ObjectKey("", name))) for name in nodes]
    taints = [one["key"] for spec in found for one in spec.get("taints") or []]
    return labels.MOVING not in taints and not any(spec.get("unschedulable") for spec in found)


async def drain(cluster: ClusterBackend, directory: Path) -> None:
    """Run `lws drain` for three of eight nodes at once, `lws move` for one group, and a drain that is canceled."""
    replica = Replica(directory, "manager", directory / "manager.kubeconfig", dict(CONFIGURATION))
    client = Client(cluster.transport("tests"))
    async with deployed(cluster, replica) as manager, space_of(cluster, manager, client) as space:
        session = session_of(space)
        rollout = {"maxUnavailable": AWAY, "maxSurge": 0}
        pods, before = (
            (await space.bring_up(lws(replicas=MANY, size=2, rollout=rollout, template=in_pool()))).pods.values(),
            await leader_uids(space),
        )
        closed, affected = POOL[:3], groups_on(pods, *POOL[:3])
        assert sum(len(groups_on(pods, node)) for node in closed) > len(affected), "no group is on two of them"
        preview = await (await Drain.read(session, closed)).preview()
        assert "would remain, because groups are moved only if" in preview
        space.always(few_are_away)
        try:
            for node in closed:  # otherwise a group that moves to one of these nodes would have to move a second time
                await space.cordon(node)
            await space.patch({"metadata": {"annotations": {labels.MOVE_OFF_CLOSED_NODES: "on"}}})
            assert "all groups were moved from" in await (await Drain.read(session, closed)).run(LIMIT * 2)
            state = await space.settled()
            assert leaders_seen(space) == {label: 1 + (label in affected) for label in before}
            assert not state.notes("RecreateGroup")
            assert not groups_on(state.pods.values(), *closed)
            assert await (await Drain.read(session, closed)).cancel()
            assert await is_open(space, *closed)

            chosen = await GroupMove.find(session, Selection("web", 5), "")
            assert await chosen.run(LIMIT) == f"web/5 moved from {', '.join(sorted(chosen.nodes))}"
            moved = (await space.settled()).pods.values()
            assert not groups_on(moved, *chosen.nodes) & {"5"}
            assert await is_open(space, *POOL)

            before, last = await leader_uids(space), POOL[7]
            there = groups_on(moved, last)
            running = asyncio.create_task((await Drain.read(session, [last])).run(LIMIT))
            await space.until(lambda state: begun(state, before))
            running.cancel()
            await asyncio.wait([running])
            await (await Drain.read(session, [last])).cancel()
            state = await space.settled()
            changed = {label for label, uid in (await leader_uids(space)).items() if uid != before[label]}
            assert changed < there
            assert await is_open(space, *POOL)
            assert not meta.is_condition_true(state.leaderworkersets["web"], "MoveInProgress")
        finally:
            for node in POOL:
                await space.cordon(node, unschedulable=False)
    await client.close()
    assert "Traceback" not in replica.log.read_text()


def begun(state: State, before: Mapping[str, str]) -> None:
    """Assert that a leader is being deleted or was replaced."""
    staying = {
        groupname.group_label(pod): meta.uid(pod)
        for pod in state.pods.values()
        if groupname.is_leader(pod) and not meta.is_deleting(pod)
    }
    assert any(staying.get(label) != uid for label, uid in before.items())


def leaders_seen(space: LiveScenario) -> dict[str, int]:
    """Return the number of created leaders for each group."""
    seen: dict[str, set[str]] = {}
    for change in space.changes:
        if groupname.is_leader(change.object):
            seen.setdefault(groupname.group_label(change.object), set()).add(meta.uid(change.object))
    return {label: len(uids) for label, uids in seen.items()}


@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
async def test_lws_drain_drains_nodes_on_a_real_control_plane(cluster: KubernetesCluster, tmp_path: Path) -> None:
    """Of 40 groups on 8 nodes, each group on a cordoned node is moved once, at most four at a time (ADR 23)."""
    await drain(cluster, tmp_path)
