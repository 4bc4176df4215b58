"""Tests the simulated nodes."""

import pytest
from tests.unit.localkube.controllers.objects import NOW

from kuberuntime.objects import meta
from localkube.controllers.nodes.nodeoptions import parse_label, parse_taint
from localkube.controllers.nodes.nodes import NodeSettings, build_node, node_names


def test_default_node_has_ample_capacity() -> None:
    node = build_node(NodeSettings(), 0, NOW)
    assert meta.name(node) == "node-0"
    assert node["status"]["allocatable"] == {"cpu": "1k", "memory": "4Ti", "ephemeral-storage": "100Ti", "pods": "10k"}
    assert meta.labels(node)["kubernetes.io/hostname"] == "node-0"
    assert meta.is_condition_true(node, "Ready")


def test_settings_define_labels_taints_and_capacity() -> None:
    taint = parse_taint("dedicated=gpu:NoSchedule")
    settings = NodeSettings(labels=(parse_label("rack=r{i//2}"),), capacity={"cpu": "8"}, taints=(taint,)).with_gpus(4)
    node = build_node(settings, 3, NOW)
    assert meta.labels(node)["rack"] == "r1"
    assert node["spec"] == {"taints": [{"key": "dedicated", "effect": "NoSchedule", "value": "gpu"}]}
    assert node["status"]["capacity"]["cpu"] == "8"
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"


@pytest.mark.parametrize(
    "settings",
    [
        NodeSettings(count=4, labels=(parse_label("rack=r{4//(2-i)}"),)),
        NodeSettings(count=4, taints=(parse_taint("rack=r{4//(2-i)}:NoSchedule"),)),
    ],
    ids=["label", "taint"],
)
def test_template_that_fails_for_a_later_node_is_rejected(settings: NodeSettings) -> None:
    with pytest.raises(ValueError, match="division by zero for node 2"):
        settings.check()


def test_nodes_of_several_kinds_are_numbered_consecutively() -> None:
    gpu = NodeSettings(count=2, labels=(parse_label("rack=r{i-1}"),), capacity={"nvidia.com/gpu": "8"})
    settings = NodeSettings(labels=(parse_label("pool=cpu"),), other_nodes=(gpu, NodeSettings()))
    assert node_names(settings) == ["node-0", "node-1", "node-2", "node-3"]
    nodes = [build_node(settings, index, NOW) for index in range(settings.total)]
    assert [meta.labels(node).get("pool") for node in nodes] == ["cpu", None, None, None]
    assert [meta.labels(node).get("rack") for node in nodes] == [None, "r0", "r1", None]
    assert [node["status"]["capacity"].get("nvidia.com/gpu") for node in nodes] == [None, "8", "8", None]


def test_template_of_a_later_kind_is_checked() -> None:
    settings = NodeSettings(other_nodes=(NodeSettings(count=2, labels=(parse_label("rack=r{4//(2-i)}"),)),))
    with pytest.raises(ValueError, match="division by zero for node 2"):
        settings.check()
