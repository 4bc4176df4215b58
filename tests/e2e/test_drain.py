"""Tests that nodes of an embedded cluster are drained and groups moved if annotations allow it (ADR 23)."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from testkit.waiting import until
from tests.e2e.harness import SLEEP, LocalCluster, Shell, clean_up, facts, lws, make_shell, ranks, shell_script

from leaderworkerset.api import labels

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    shell: Shell = make_shell(tmp_path_factory.mktemp("drain"))
    shell.lws("up", "drained", "--detach", "--nodes=3")
    yield LocalCluster(shell, "drained")
    clean_up(shell)


def test_node_is_drained_group_by_group_and_one_group_moves(cluster: LocalCluster) -> None:
    web = lws("web", SLEEP, replicas=3, size=2)
    web["metadata"]["annotations"] = {labels.MOVE_OFF_CLOSED_NODES: "on", labels.DISRUPTION_BUDGET: "rollout"}
    cluster.start(web)
    before = facts(cluster.view("web"), "node")
    node = before["0/0"]
    assert "group" in cluster.lws("drain", node, "--dry-run")
    assert facts(cluster.view("web"), "node") == before

    assert "all groups were moved from" in cluster.lws("drain", node)

    cluster.lws("wait", "web", "--timeout=30")
    after = facts(cluster.view("web"), "node")
    assert node not in after.values()
    assert "uncordoned" in cluster.lws("drain", node, "--cancel")
    assert f"web/0 moved from {after['0/0']}" in cluster.lws("move", "web/0", "--off", after["0/0"])
    assert after["0/0"] not in facts(cluster.view("web"), "node", group=0).values()


def test_move_leaves_no_taint_when_sigterm_ends_it(cluster: LocalCluster) -> None:
    """The move waits because group 1 does not become ready."""
    script = "[ $LWS_GROUP_INDEX = 0 ] && touch /tmp/ready; exec sleep 1000"
    held = lws("held", shell_script(script), replicas=2)
    held["metadata"]["annotations"] = {labels.MOVE_OFF_CLOSED_NODES: "on"}
    (container,) = held["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    container["readinessProbe"] = {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}
    cluster.apply(held)
    cluster.until("held", lambda view: ranks(view)["0/0"]["ready"] and ranks(view)["1/0"]["node"])
    move = cluster.shell.start("move", "held/0", f"--local={cluster.name}")
    until(lambda: labels.MOVING in cluster.lws("nodes"), "the taint", 30)
    move.send_signal(signal.SIGTERM)
    output, _ = move.communicate(timeout=30)
    assert move.returncode == 130, output
    assert labels.MOVING not in cluster.lws("nodes")
    cluster.lws("delete", "held")


def test_drain_skips_a_set_without_the_annotation(cluster: LocalCluster, tmp_path: Path) -> None:
    cluster.start(lws("still", SLEEP, replicas=1))
    (node,) = facts(cluster.view("still"), "node").values()
    message = cluster.refused("drain", node)
    assert f"set the annotation {labels.MOVE_OFF_CLOSED_NODES}=on" in message
    cluster.lws("drain", node, "--cancel")
