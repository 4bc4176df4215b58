"""Nodes are drained and groups moved on a cluster of this machine, where sets choose that by their annotations alone (ADR 23)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.harness import SLEEP, Cluster, Shell, clean_up, facts, lws, make_shell

from leaderworkerset.api import labels

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    shell: Shell = make_shell(tmp_path_factory.mktemp("drain"))
    shell.lws("up", "drained", "--detach", "--nodes=3")
    yield Cluster(shell, "drained")
    clean_up(shell)


def test_a_node_is_emptied_group_by_group_and_one_group_moves(cluster: Cluster) -> None:
    web = lws("web", SLEEP, replicas=3, size=2)
    web["metadata"]["annotations"] = {labels.MOVE_OFF_CLOSED_NODES: "on", labels.DISRUPTION_BUDGET: "rollout"}
    cluster.start(web)
    before = facts(cluster.view("web"), "node")
    node = before["0/0"]
    assert "group" in cluster.lws("drain", node, "--dry-run")
    assert facts(cluster.view("web"), "node") == before

    assert "no group is there any more" in cluster.lws("drain", node)

    cluster.lws("wait", "web", "--timeout=30")
    after = facts(cluster.view("web"), "node")
    assert node not in after.values()
    assert "uncordoned" in cluster.lws("drain", node, "--cancel")
    assert f"web/0 moved off {after['0/0']}" in cluster.lws("move", "web/0", "--off", after["0/0"])
    assert after["0/0"] not in facts(cluster.view("web"), "node", group=0).values()


def test_a_set_that_did_not_choose_it_stays_and_the_command_says_what_to_do(cluster: Cluster, tmp_path: Path) -> None:
    cluster.start(lws("still", SLEEP, replicas=1))
    (node,) = facts(cluster.view("still"), "node").values()
    message = cluster.refused("drain", node)
    assert f"set annotation {labels.MOVE_OFF_CLOSED_NODES}=on" in message
    cluster.lws("drain", node, "--cancel")
