"""Tests that all commands and pages show the same free amounts of a node."""

import pytest
from testkit import objects
from tests.explanations import builders

from kuberuntime.objects.resources import NODES, PODS
from lwsctl.cli.commands.inspect.nodes import node_table
from lwsctl.dashboard.pages import totals
from lwsctl.dashboard.pages.page import PageFacts
from lwsctl.diagnosis.causes.scheduling import shortfall
from lwsctl.model.nodestate import nodes_of

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("running", "ended", "free"),
    [([1], [], 3), ([3], [4], 1), ([3, 3], [], 0)],  # in the last row, devices failed
)
def test_free_amounts_are_the_same_everywhere(running: list[int], ended: list[int], free: int) -> None:
    pods = [objects.pod(requests={GPU: str(gpus)}, phase="Running") for gpus in running]
    pods += [objects.pod(requests={GPU: str(gpus)}, phase="Succeeded") for gpus in ended]
    node = builders.node(allocatable={"cpu": "8", "pods": "110", GPU: "4"})
    waiting = builders.pod(spec=objects.pod(requests={GPU: str(free + 1)})["spec"])
    observed = builders.observed([waiting], {NODES: [node]}, running=pods)
    (_, row) = node_table(nodes_of([node], pods), show_labels=False)
    assert f"{free} of 4" in row
    assert totals.free_accelerators(PageFacts({NODES: [node], PODS: pods})) == free
    assert f"at most {free} is free on one node" in shortfall(observed, observed.view.ranks[0], GPU)
