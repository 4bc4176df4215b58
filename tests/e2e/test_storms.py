"""Tests the fault storms in the examples.

All groups recover, and no request that a budget protects fails under load.
"""

import json
import re

import pytest
from tests.e2e.harness import ROOT, LocalCluster, Shell, line_with, ranks

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]

IMAGES = ("--image", "disaggregated=examples/disaggregated", "--image", "tensor-parallel=examples/tensor-parallel")
ROUTER = "http://router-0.router:8080"


@pytest.fixture
def served(shell: Shell) -> LocalCluster:
    """A cluster of two nodes in which prefill, decode and their router are ready."""
    shell.lws("up", "default", "--detach", "--nodes", "2", *IMAGES)
    own = LocalCluster(shell, "default")
    own.lws("apply", "-f", "examples/disaggregated/lws.yaml")
    own.lws("wait", "disaggregated", "--timeout=60")
    own.lws("wait", "router", "--timeout=60")
    return own


def test_examples_recover_after_a_random_storm(served: LocalCluster) -> None:
    """The command has a seed, and the page describes its exit code."""
    served.lws("apply", "-f", "examples/tensor-parallel/lws.yaml")
    served.lws("wait", "tensor-parallel", "--timeout=60")
    page = served.lws("chaos", "random", "--seed", "7", "--minutes", "0.3", "--settle", "90", "-o", "html")
    assert "<h1>Storm passed</h1>" in page
    assert page.count('class="fault"') >= 2
    assert "<script" not in page
    with served.shell.running("port-forward", "--local", "tensor-parallel/1", ":8080") as forward:
        address = line_with(forward, "->").split(" ")[0]
        asked = served.shell.run(["python3", "examples/tensor-parallel/check.py", f"http://{address}"])
    assert "4 ranks answer as one" in asked.stdout


def test_rollout_in_a_storm_fails_no_request(served: LocalCluster) -> None:
    """Both roles are updated while controllers, webhooks and API server fail in turn, and a node is drained.

    The load runs inside the cluster, so that no unavailable part is between it and the router.
    """
    other = next(node for node in ("node-0", "node-1") if node != node_of_router(served))
    steps = [
        {"at": "1s", "fault": "manager", "for": "2s"},
        {"at": "4s", "fault": "webhooks", "for": "2s"},
        {"at": "7s", "fault": "apiserver", "for": "2s"},
        {"at": "10s", "fault": "drain", "targets": [other], "for": "4s"},
    ]
    storm = served.shell.base / "storm.yaml"
    storm.write_text(json.dumps({"steps": steps}))
    load = served.shell.start("exec", "--local", "router/0", "--", "python3", "load.py", ROUTER, "sleep", "25")
    changed = (ROOT / "examples/disaggregated/lws.yaml").read_text().replace('value: "1"', 'value: "2"')
    served.lws("apply", "-f", "-", text=changed)
    report = json.loads(served.lws("chaos", "run", "-f", str(storm), "-o", "json"))
    served.lws("wait", "disaggregated", "--timeout=60")
    told = "".join(load.communicate(timeout=90))
    assert [one["refused"] for one in report["faults"]] == [None] * 4
    counts = re.search(
        r"^0 requests failed, (\d+) answers of version 1, (\d+) answers of version 2$", told, re.MULTILINE
    )
    assert counts, told
    assert min(map(int, counts.groups())) > 10
    assert load.returncode == 0


def node_of_router(cluster: LocalCluster) -> str:
    """Return the node on which the router runs."""
    return str(ranks(cluster.view("router"))["0/0"]["node"])
