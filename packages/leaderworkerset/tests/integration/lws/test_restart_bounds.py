"""Tests delayed recreations and the removal of lost pods (docs/adr/0003-recreation-backoff.md)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
from testkit.clusters.cluster import wait_for_node
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.clusters.state import State
from tests.integration.lws.recreation import created_leaders, replaced
from tests.integration.lws.test_lost_nodes import COLLECTION, LOST, NODES, SPARE, exposed

from kuberuntime.errors import APIError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS
from kuberuntime.objects.resources import NODES as NODE_RESOURCE
from leaderworkerset.api import labels
from leaderworkerset.capabilities.lostnodes.forcedeletion import OUT_OF_SERVICE

SHORT: Final = {labels.RESTART_FIRST_DELAY: "1s", labels.RESTART_LONGEST_DELAY: "2s"}
GROUP: Final = ("web-0", "web-0-1")


def record(space: LiveScenario, leader: str = "web-0") -> dict[str, str]:
    """Return the annotations of a group's record, or an empty dict if there is no record."""
    found = space.informers[CONTROLLER_REVISIONS].store.get(space.key(f"{leader}-recreations"))
    return {} if found is None else meta.annotations(found)


async def fail_again(space: LiveScenario, before: State) -> State:
    """Make the worker of the first group restart, and wait until the group is recreated."""
    await space.fail("web-0-1")
    return await replaced(space, before, *GROUP)


async def test_backoff_annotations_delay_recreations(space: LiveScenario) -> None:
    state = await space.bring_up(lws(replicas=2, size=2, annotations=SHORT))
    for _ in range(4):
        state = await fail_again(space, state)

    def are_told(state: State) -> None:
        waits = [note.split("recreated in ")[1] for note in state.notes("BackOff")]
        assert sorted(waits) == ["1 s (failure 2 in a row)", "2 s (failure 3 in a row)", "2 s (failure 4 in a row)"]

    await space.until(are_told)


async def test_group_that_waits_for_its_recreation_is_not_ready(space: LiveScenario) -> None:
    """The pods are Ready, because the kubelet restarted the container while the failed group waits."""
    state = await space.bring_up(lws(replicas=2, size=2, annotations={labels.RESTART_FIRST_DELAY: "5m"}))
    state = await fail_again(space, state)
    await space.fail("web-0-1")

    def is_not_ready(state: State) -> None:
        assert record(space).get(labels.RECREATION_STATE) == "waiting"
        web = state.leaderworkersets["web"]
        assert meta.status(web)["readyReplicas"] == 1
        assert not meta.is_condition_true(web, "Available")

    await space.until(is_not_ready)
    resumed = {"metadata": {"annotations": {labels.RESUME_GROUP_RESTARTS: "now"}}}
    await space.patch(resumed, "web")
    await replaced(space, state, *GROUP)


async def test_groups_are_recreated_immediately_without_backoff(space: LiveScenario) -> None:
    """As in the Go controller, the group is recreated without a delay (R-POD-5)."""
    state = await space.bring_up(lws(replicas=2, size=2, annotations={labels.RESTART_BACKOFF: "off"}))
    for _ in range(3):
        state = await fail_again(space, state)
    assert record(space) == {}
    assert state.notes("BackOff") == []


async def test_leader_replaced_by_others_is_not_a_recreation(space: LiveScenario) -> None:
    """Only a recreation because of a failure is counted, even if other writers delete pods."""
    await space.create(lws(replicas=1, size=2, annotations={labels.RESTART_FIRST_DELAY: "5m"}))
    state = await fail_again(space, await space.settled())
    for _ in range(4):
        await space.fail("web-0-1")
        await space.until(lambda state: assert_condemned(space, state))
        due = record(space)[labels.RECREATE_AFTER]
        await space.delete("web-0", PODS)
        state = await replaced(space, state, *GROUP)
        assert record(space)[labels.RECREATIONS] == "2"
        assert record(space)[labels.RECREATE_AFTER] == due


def assert_condemned(space: LiveScenario, state: State) -> None:
    """Check that the record of the group refers to its current leader."""
    assert record(space)[labels.RECREATED_LEADER] == meta.uid(state.pods["web-0"])


async def test_invalid_restart_bounds_are_rejected(space: LiveScenario) -> None:
    with pytest.raises(APIError, match='max-group-restarts: Invalid value: "-1": must be a number from 1 to 1000'):
        await space.create(lws(annotations={labels.MAX_GROUP_RESTARTS: "-1"}))


async def test_pods_of_a_lost_node_are_deleted_by_force(space: LiveScenario) -> None:
    """Groups are recreated as a whole. No leader is recreated while the previous one may be running."""
    of_worker, of_leader = "pod-restart-worker", "pod-restart-leader"
    before, worker, leader = await settle(space, of_worker, of_leader)
    group = worker.rpartition("-")[0]
    async with space.cluster.hung_node(space.client, LOST, "Unknown"):
        await replaced(space, before, group, worker, name=of_worker, limit=COLLECTION)
        state = await space.until(lambda state: assert_held_up(state, of_leader, leader), limit=COLLECTION)
        assert meta.uid(state.pods[leader]) == before.uids(of_leader)[leader]
        assert created_leaders(space, of_leader) == []
        async with down(space, LOST):
            # Nodes are not watched. Without this change, the next decision would follow half a minute later.
            await space.patch({"metadata": {"annotations": {"tests.example.com/look": "again"}}}, leader, resource=PODS)
            await replaced(space, before, leader, f"{leader}-1", name=of_leader, limit=COLLECTION)
    assert created_leaders(space, of_leader) == [leader]
    assert created_leaders(space, of_worker) == [group]
    notes = space.state.notes("LostPod", of_worker)
    assert [note.rpartition(". ")[2] for note in notes] == [f"Force-deleted it to unblock group {group[-1]}"]


def assert_held_up(state: State, name: str, leader: str) -> None:
    """Check that the leader is being deleted, and that the LeaderWorkerSet reports the reason for the delay."""
    assert meta.is_deleting(state.pods[leader])
    (note,) = state.notes("LostPod", name)
    assert note.endswith(f"A leader is force-deleted only if its node is deleted or has the taint {OUT_OF_SERVICE}")


async def settle(space: LiveScenario, *names: str) -> tuple[State, str, str]:
    """Create workloads that remove lost pods. Return the state, and each workload's pod on the node to be lost."""
    for node in NODES:
        await wait_for_node(space.client, node)
    await space.cordon(SPARE)
    for name in names:
        obj = exposed(name)
        obj["metadata"]["annotations"] = {labels.RELEASE_LOST_PODS_AFTER: "2s"}
        await space.create(obj)
    for name in names:
        await space.settled(name)
    await space.cordon(SPARE, unschedulable=False)
    state = space.state
    there = [pod for name in names for pod, obj in state.of(name).items() if meta.spec(obj)["nodeName"] == LOST]
    assert len(there) == 2
    space.changes.clear()
    return state, there[0], there[1]


@asynccontextmanager
async def down(space: LiveScenario, node: str) -> AsyncIterator[None]:
    """Mark a node as out of service, as an administrator does after a shutdown."""
    key, taint = ObjectKey("", node), {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
    await taint_node(space, key, taint)
    try:
        yield
    finally:
        await taint_node(space, key, taint | {"$patch": "delete"})


async def taint_node(space: LiveScenario, key: ObjectKey, taint: JSONObject) -> None:
    """Add or remove a taint."""
    await space.client.patch(NODE_RESOURCE, key, {"spec": {"taints": [taint]}}, kind="strategic")
