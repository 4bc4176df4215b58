"""Tests that all commands and pages show the same free amounts of a node."""

import pytest
from tests.explanations import builders

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import NODES, PODS
from lwsctl.cli.commands.inspect.nodes import node_table
from lwsctl.dashboard.pages import totals
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.diagnosis.causes.scheduling import shortfall
from lwsctl.model.nodestate import nodes_of

GPU = "nvidia.com/gpu"


def pod(name: str, gpus: int, phase: str = "Running") -> JSONObject:
    container = {"name": "main", "resources": {"requests": {GPU: str(gpus)}}}
    spec = {"nodeName": "node-0", "containers": [container]}
    return {"metadata": {"name": name, "namespace": "prod"}, "spec": spec, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("pods", "free"),
    [
        ([pod("a", 1)], 3),
        ([pod("a", 3), pod("b", 4, "Succeeded")], 1),
        ([pod("a", 3), pod("b", 3)], 0),  # devices failed
    ],
)
def test_free_amounts_are_the_same_everywhere(pods: list[JSONObject], free: int) -> None:
    node = builders.node(allocatable={"cpu": "8", "pods": "110", GPU: "4"})
    waiting = builders.pod(spec=pod("web-0", free + 1)["spec"])
    observed = builders.observed([waiting], {NODES: [node]}, running=pods)
    (_, row) = node_table(nodes_of([node], pods), show_labels=False)
    assert f"{free} of 4" in row
    assert totals.free_accelerators(PageFacts({NODES: [node], PODS: pods})) == free
    assert f"at most {free} is free on one node" in shortfall(observed, observed.view.ranks[0], GPU)
