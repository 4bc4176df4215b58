"""Tests that kube-scheduler with its feature gates starts all containers of a group or none."""

import json
from collections.abc import Iterator
from typing import Final

import pytest
from tests.node import controlplane, product
from tests.node.cluster import NodeCluster
from tests.node.controlplane import SERVER
from tests.node.objects import leaderworkerset
from tests.node.place import Place
from tests.node.situations.situation import asking

from kuberuntime.objects import meta

pytestmark = pytest.mark.long

GATES: Final = "--feature-gates=GenericWorkload=true,GangScheduling=true"
FURTHER: Final[controlplane.Flags] = {
    SERVER: ["--runtime-config=scheduling.k8s.io/v1alpha2=true", GATES],
    "kube-controller-manager": [GATES],
    "kube-scheduler": [GATES],
}
CHIP: Final = "example.com/chip"
CONFIGURATION: Final = product.MANIFESTS / "gang.yaml"


@pytest.fixture
def scheduled(nodes: NodeCluster) -> Iterator[None]:
    """Serve PodGroups, and let the manager create them. Restore both components afterwards."""
    try:
        controlplane.restart(nodes.machines[0], nodes.assets, nodes.pki, FURTHER)
        product.install(nodes, configuration=CONFIGURATION)
        yield
    finally:
        for node in ("node1", "node2"):
            offer(nodes, node, None)
        controlplane.restart(nodes.machines[0], nodes.assets, nodes.pki)
        product.install(nodes)


def offer(nodes: NodeCluster, node: str, chips: str | None) -> None:
    """Set the number of chips on a node. If it is None, remove the chips."""
    patch = json.dumps({"status": {kind: {CHIP: chips} for kind in ("capacity", "allocatable")}})
    nodes.kubectl("patch", "node", node, "--subresource=status", "--type=merge", f"--patch={patch}")


def bound(place: Place) -> dict[str, str]:
    """Return the nodes of scheduled pods by pod name."""
    return {meta.name(pod): pod["spec"]["nodeName"] for pod in place.pods("gang") if pod["spec"].get("nodeName")}


@pytest.mark.usefixtures("scheduled")
def test_native_group_starts_only_as_a_whole(place: Place) -> None:
    offer(place.cluster, "node1", "1")
    place.apply(leaderworkerset("gang", asking(**{CHIP: "1"})))

    def is_refused() -> bool:
        (item,) = json.loads(place.ended("explain", "gang", "--output=json").stdout)["items"]
        assert bound(place) == {}
        return bool(item["code"] == "LWS-E032")

    place.until(is_refused, "explain names the group that does not fit")
    assert "minCount: 2" in place.kubectl("get", "podgroups.scheduling.k8s.io", "--output=yaml")
    offer(place.cluster, "node2", "1")
    place.await_ready("gang", 1, 2)
    assert sorted(bound(place).values()) == ["node1", "node2"]
    place.kubectl("delete", "lws", "gang")
    place.until(lambda: not place.kubectl("get", "podgroups.scheduling.k8s.io", "--output=name"), "no PodGroup is left")
