"""Tests nodes that are drained in sequence.

Groups are immediately recreated as a whole, and no failure is counted.
"""

from collections.abc import Awaitable, Callable

import pytest
from tests.integration.clusters.objects import lws, pod_template, slow_template
from tests.integration.clusters.space import LiveScenario
from tests.integration.lws.recreation import replaced

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, NODES
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.restarts import missingworkers

TAINTS = [{"key": "maintenance", "effect": "NoExecute"}]
WORKERS = ("web-0-1", "web-1-2", "web-2-1")
"""The pods whose nodes are drained."""

Step = Callable[[LiveScenario, str], Awaitable[None]]


async def taint(space: LiveScenario, node: str) -> None:
    """Evict the pods of a node with a taint."""
    await space.client.patch(NODES, ObjectKey("", node), {"spec": {"taints": TAINTS}}, kind="merge")


async def remain(_space: LiveScenario) -> None:
    """Do not change any object in the meantime."""


async def roll_with_surge(space: LiveScenario) -> None:
    """Change the image, with a surge of one group."""
    rolling = {"maxUnavailable": 0, "maxSurge": 1}
    await space.edit(rolloutStrategy={"type": "RollingUpdate", "rollingUpdateConfiguration": rolling})
    await space.replace_worker_template(pod_template("app:2"))


async def autoscale(space: LiveScenario) -> None:
    """Request an additional group."""
    await space.scale(4)


async def assert_uncounted(space: LiveScenario) -> None:
    """Assert that no recreation was counted or delayed."""
    records = (await space.client.list(CONTROLLER_REVISIONS, namespace=space.namespace)).items
    assert {meta.annotations(record).get(labels.RECREATIONS) for record in records} <= {None, "0"}
    assert not [event for event in space.state.events.values() if "BackOff" in event["reason"]], space.story()


@pytest.mark.parametrize("meanwhile", [remain, roll_with_surge, autoscale])
@pytest.mark.parametrize("step", [LiveScenario.drain, taint])
async def test_emptied_nodes_recreate_groups_uncounted(
    space: LiveScenario, step: Step, meanwhile: Callable[[LiveScenario], Awaitable[None]]
) -> None:
    await space.bring_up(lws(replicas=3, size=3))
    for number, worker in enumerate(WORKERS):
        before = space.state.pods[worker]
        leader = space.state.pods[worker.rpartition("-")[0]]
        node = str(meta.spec(before)["nodeName"])
        try:
            await step(space, node)
            if number == 1:
                await meanwhile(space)
            gone = {meta.uid(before), meta.uid(leader)}
            await space.until(
                lambda state, gone=gone: _assert_gone({meta.uid(pod) for pod in state.pods.values()}, gone)  # type: ignore[misc]
            )
            await space.settled()
        finally:
            opened = {"spec": {"unschedulable": False, "taints": None}}
            await space.client.patch(NODES, ObjectKey("", node), opened, kind="merge")
    await assert_uncounted(space)


def _assert_gone(uids: set[str], gone: set[str]) -> None:
    assert not uids & gone


async def test_worker_evicted_soon_without_a_manager_is_noticed(space: LiveScenario) -> None:
    """The `Available` condition is True only for a few seconds (docs/adr/0014)."""
    before = await space.bring_up(lws(replicas=2, size=3, template={"workerTemplate": slow_template(2)}))

    async def written_before() -> float:
        last = missingworkers.last_status(await space.get(LEADERWORKERSETS, "web")).written_at
        return (space.cluster.clock.now() - timestamps.parse(last)).total_seconds()

    await space.eventually(written_before, lambda seconds: seconds > missingworkers.DRIFT.total_seconds() + 1)
    await space.manager.kill()
    await space.evict("web-1-2")
    old = before.uids("web")["web-1-2"]
    await space.until(lambda state: _assert_gone({old}, {state.uids("web")["web-1-2"]}))
    await space.manager.start()
    await replaced(space, before, "web-1", "web-1-1", "web-1-2")
    await assert_uncounted(space)
