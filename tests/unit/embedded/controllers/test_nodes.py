"""The simulated nodes."""

import pytest
from tests.unit.embedded.controllers.objects import NOW

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.controllers.labeltemplate import parse_label
from leaderworkerset.embedded.controllers.nodes import NodeSettings, build_node, parse_capacity, parse_taint


def test_a_node_has_far_more_than_newcomers_ask_for() -> None:
    node = build_node(NodeSettings(), 0, NOW)
    assert meta.name(node) == "node-0"
    assert node["status"]["allocatable"] == {"cpu": "1k", "memory": "4Ti", "ephemeral-storage": "100Ti", "pods": "10k"}
    assert meta.labels(node)["kubernetes.io/hostname"] == "node-0"
    assert meta.is_condition_true(node, "Ready")


def test_settings_shape_the_nodes() -> None:
    taint = parse_taint("dedicated=gpu:NoSchedule")
    settings = NodeSettings(labels=(parse_label("rack=r{i//2}"),), capacity={"cpu": "8"}, taints=(taint,)).with_gpus(4)
    node = build_node(settings, 3, NOW)
    assert meta.labels(node)["rack"] == "r1"
    assert node["spec"] == {"taints": [{"key": "dedicated", "effect": "NoSchedule", "value": "gpu"}]}
    assert node["status"]["capacity"]["cpu"] == "8"
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "4"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b:NoSchedule", {"key": "a", "value": "b", "effect": "NoSchedule"}),
        ("a:NoExecute", {"key": "a", "effect": "NoExecute"}),
    ],
)
def test_taints(text: str, expected: JSONObject) -> None:
    assert parse_taint(text) == expected


@pytest.mark.parametrize("text", ["a", "a=b", "a=b:Never", "=b:NoSchedule", "a=b c:NoSchedule"])
def test_taint_faults(text: str) -> None:
    with pytest.raises(ValueError, match="node taint: Invalid value"):
        parse_taint(text)


@pytest.mark.parametrize("text", ["cpu", "=1", "a b=1", "cpu=much"])
def test_capacity_faults(text: str) -> None:
    with pytest.raises(ValueError, match="node capacity: Invalid value"):
        parse_capacity(text)
