"""Tests that `lws drain` and `lws move` report that maintenance is disabled, and do not change anything."""

import pytest
from tests.integration.clusters.objects import lws
from tests.integration.clusters.space import LiveScenario
from tests.integration.lwsctl.test_commands import session_of

from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import NODES
from leaderworkerset.api import labels
from lwsctl.cli.commands.rollout.drain import Drain
from lwsctl.cli.commands.rollout.move import GroupMove
from lwsctl.cli.errors import CommandError
from lwsctl.cli.rollouts import nodewrites
from lwsctl.views.selection import Selection

ON = {labels.MOVE_OFF_CLOSED_NODES: "on"}
LIMIT = 60.0


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait one second for a manager that never responds, because the duration does not affect the report."""
    monkeypatch.setattr(nodewrites, "PATIENCE", 1.0)


async def node_of(space: LiveScenario, pod: str) -> str:
    return str(meta.spec((await space.settled()).pods[pod])["nodeName"])


async def is_open(space: LiveScenario, node: str) -> bool:
    spec = meta.spec(await space.client.get(NODES, ObjectKey("", node)))
    return not spec.get("unschedulable") and labels.MOVING not in [one["key"] for one in spec.get("taints") or []]


async def test_drain_reports_that_maintenance_is_disabled(space: LiveScenario) -> None:
    await space.create(lws(replicas=2, size=1, annotations=ON))
    node, session = await node_of(space, "web-1"), session_of(space)
    before = await space.versions()
    preview = await (await Drain.read(session, [node])).preview()
    assert f"  {space.namespace}/web: group 1 would move, at most 1 at a time" in preview
    try:
        with pytest.raises(CommandError, match=f"lws drain {node} --cancel") as refused:
            await (await Drain.read(session, [node])).run(LIMIT)
        assert f"group 1 of {space.namespace}/web: the manager does not move groups" in str(refused.value)
        assert "uncordoned" in await (await Drain.read(session, [node])).cancel()
        assert await is_open(space, node)
    finally:
        await space.cordon(node, unschedulable=False)
    assert await space.versions() == before


async def test_drain_names_the_annotation_that_keeps_groups(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=1, annotations={labels.MOVE_OFF_CLOSED_NODES: "off"}))
    node = await node_of(space, "web-0")
    preview = await (await Drain.read(session_of(space), [f"node/{node}"])).preview()
    assert f"group 0 would remain, because its annotation {labels.MOVE_OFF_CLOSED_NODES} is off" in preview
    assert "1 pod that" in preview
    assert await is_open(space, node)


async def test_node_without_groups_is_drained_immediately(space: LiveScenario) -> None:
    await space.create(lws(replicas=1, size=1, annotations=ON))
    busy = await node_of(space, "web-0")
    free = next(name for name in ("node-0", "node-1") if name != busy)
    try:
        assert "(0 groups in 0s)" in await (await Drain.read(session_of(space), [free])).run(LIMIT)
    finally:
        await space.cordon(free, unschedulable=False)


async def test_unsupported_move_leaves_no_annotation_and_no_taint(space: LiveScenario) -> None:
    await space.create(lws(replicas=2, size=2))
    node, session = await node_of(space, "web-1"), session_of(space)
    with pytest.raises(CommandError, match="the manager does not move web/1; enable `maintenance`"):
        await (await GroupMove.find(session, Selection("web", 1), "")).run(LIMIT)
    pod = (await space.settled()).pods["web-1"]
    assert labels.MOVE_GROUP not in meta.annotations(pod)
    assert await is_open(space, node)


async def test_move_does_nothing_when_the_group_is_elsewhere(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=1))
    move = await GroupMove.find(session_of(space), Selection("web", 0), "node-none")
    assert await move.run(LIMIT) == "web/0 was not moved, because it has no pod on node-none"
    with pytest.raises(CommandError, match="web/7 does not exist"):
        await GroupMove.find(session_of(space), Selection("web", 7), "")


async def test_move_is_rejected_when_the_group_would_return(space: LiveScenario) -> None:
    everything = [{"operator": "Exists"}]
    made = lws(replicas=1, size=1)
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["tolerations"] = everything
    await space.bring_up(made)
    with pytest.raises(CommandError, match="pod web-0 tolerates taint"):
        await GroupMove.find(session_of(space), Selection("web", 0), "")


async def test_move_of_a_group_that_fits_nowhere_else_is_rejected(space: LiveScenario) -> None:
    made = lws(replicas=1, size=1)
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["nodeSelector"] = {
        "kubernetes.io/hostname": "node-0"
    }
    await space.bring_up(made)
    session, group = session_of(space), Selection("web", 0)
    with pytest.raises(
        CommandError,
        match=r"not moved, because it does not fit on any other node \(node selector, affinity or volume: node-1",
    ):
        await GroupMove.find(session, group, "")
    forced = await GroupMove.find(session, group, "", is_forced=True)
    assert "would be moved from node-0; it does not fit on any other node" in forced.preview()
    preview = await (await Drain.read(session, ["node-0"])).preview()
    assert (
        f"{space.namespace}/web: group 0 would wait, because it does not fit on any other node (node selector"
        in preview
    )


async def test_preview_of_a_move_names_the_other_nodes(space: LiveScenario) -> None:
    await space.bring_up(lws(replicas=1, size=1))
    node, session = await node_of(space, "web-0"), session_of(space)
    preview = (await GroupMove.find(session, Selection("web", 0), "")).preview()
    assert f"would be moved from {node}; it fits on node-" in preview
    assert f"it fits on {node} " not in preview
