"""Hundreds of pods: more than fit below 1,024 descriptors of the launcher."""

from pathlib import Path

import pytest
from bench.idle import processes
from tests.e2e.harness import Cluster, Shell, is_whole, lws, ranks

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

GROUPS = 75
STUB = {"name": "main", "image": "vllm/vllm-openai", "ports": [{"containerPort": 8000}]}


def test_three_hundred_pods_become_ready_and_none_that_ran_is_started_again(shell: Shell) -> None:
    shell.lws("up", "many", "--detach", "--stub")
    cluster = Cluster(shell, "many")
    cluster.start(lws("many", STUB, replicas=2, size=4))
    launcher = processes(int((shell.state / "many" / "lock").read_text()))[1]
    cluster.lws("scale", "many", f"--replicas={GROUPS}")
    cluster.lws("wait", "many", "--timeout=600")
    view = cluster.view("many")
    assert is_whole(view)
    assert len(ranks(view)) == 4 * GROUPS
    assert {rank["restarts"] for rank in ranks(view).values()} == {0}
    assert Path(f"/proc/{launcher}/comm").read_text().strip() == "kube-launcher"
