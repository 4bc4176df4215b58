"""Tests the taints of unhealthy and cordoned nodes."""

import pytest
from testkit.objects import merge
from tests.unit.localkube.controllers.objects import NOW, build_node

from kuberuntime.objects.meta import JSONObject
from localkube.controllers.nodes.nodetaints import PREFIX, desired_taints

TIME = "2026-01-01T12:00:00Z"


def node(*conditions: tuple[str, str], **spec: object) -> JSONObject:
    said = [{"type": kind, "status": status} for kind, status in conditions]
    return merge(build_node("node-0"), {"status": {"conditions": said}, "spec": spec})


def taint(name: str, effect: str) -> JSONObject:
    return {"key": PREFIX + name, "effect": effect, "timeAdded": TIME}


@pytest.mark.parametrize(
    ("sick", "expected"),
    [
        (node(("Ready", "False")), [taint("not-ready", "NoSchedule"), taint("not-ready", "NoExecute")]),
        (node(("Ready", "Unknown")), [taint("unreachable", "NoSchedule"), taint("unreachable", "NoExecute")]),
        (node(("Ready", "True"), ("MemoryPressure", "True")), [taint("memory-pressure", "NoSchedule")]),
        (node(("Ready", "True"), unschedulable=True), [taint("unschedulable", "NoSchedule")]),
    ],
    ids=["not ready", "unreachable", "short of memory", "cordoned"],
)
def test_unhealthy_node_receives_taints_once(sick: JSONObject, expected: list[JSONObject]) -> None:
    assert desired_taints(sick, NOW) == expected
    assert desired_taints(merge(sick, {"spec": {"taints": expected}}), NOW) is None


def test_own_taints_are_removed_and_others_kept() -> None:
    foreign: JSONObject = {"key": "pool", "value": "gpu", "effect": "NoExecute"}
    lost = [taint("unreachable", "NoSchedule"), foreign, taint("unreachable", "NoExecute")]
    assert desired_taints(node(("Ready", "True"), taints=lost), NOW) == [foreign]
    changed = desired_taints(node(("Ready", "False"), taints=lost), NOW)
    assert changed == [foreign, taint("not-ready", "NoSchedule"), taint("not-ready", "NoExecute")]


@pytest.mark.parametrize("well", [node(("Ready", "True"), ("DiskPressure", "False")), node()], ids=["well", "silent"])
def test_healthy_node_has_no_taints(well: JSONObject) -> None:
    assert desired_taints(well, NOW) is None
