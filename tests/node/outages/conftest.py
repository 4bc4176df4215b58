"""Restores both nodes after each test."""

from collections.abc import Iterator

import pytest
from tests.node import daemons
from tests.node.cluster import NODES, NodeCluster, await_nodes
from tests.node.machine import is_alive

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
UNREACHABLE = "node.kubernetes.io/unreachable"
"""A taint that the node controller removes automatically."""


@pytest.fixture(autouse=True)
def _mended(nodes: NodeCluster) -> Iterator[None]:
    """Restart the processes that a test stopped, and uncordon the nodes."""
    yield
    for machine in nodes.machines:
        if not (machine.directory / "containerd.pid").exists():
            daemons.start_containerd(machine, nodes.node_assets)
        if not (machine.directory / "kubelet.pid").exists():
            daemons.start_kubelet(machine, nodes.node_assets, nodes.kubeconfig.parent)
        assert is_alive(machine.holder)
    nodes.kubectl("uncordon", *NODES)
    await_nodes(nodes)
    for name in NODES:
        taints = nodes.kubectl("get", "node", name, "--output=jsonpath={.spec.taints[*].key}").split()
        for taint in {one for one in taints if one != UNREACHABLE}:
            nodes.kubectl("taint", "node", name, f"{taint}-")
