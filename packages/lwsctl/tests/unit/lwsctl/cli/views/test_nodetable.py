"""Tests that node tables show free amounts based on pod requests, and all details of a single node."""

from typing import Any

from testkit import objects
from tests.explanations.builders import node

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.commands.inspect.nodes import describe_node, node_table
from lwsctl.model.nodestate import nodes_of

GPUS = {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8", "ephemeral-storage": "100Gi"}
READY = [{"type": "Ready", "status": "True"}]


def of(name: str, allocatable: dict[str, str], **fields: Any) -> JSONObject:
    one = node(name, labels={"rack": "r1", "gpu": "h100"})
    return one | {"status": {"allocatable": allocatable, "conditions": READY}} | fields


def running_pod(name: str, on: str, **requests: str) -> JSONObject:
    return objects.pod(name, node=on, metadata={"namespace": "prod"}, requests=requests, phase="Running")


PODS = [
    running_pod("web-0", "a", cpu="1500m", memory="512Mi", **{"nvidia.com/gpu": "6"}),
    running_pod("web-0-1", "a"),
    objects.pod("over", node="a", phase="Succeeded", requests={"cpu": "4"}),
    running_pod("waits", ""),
]


def test_requests_of_pods_reduce_the_free_amounts() -> None:
    tainted = {"taints": [{"key": "team", "value": "blue", "effect": "NoSchedule"}], "unschedulable": True}
    nodes = [of("a", GPUS), of("b", {"cpu": "4", "memory": "500Mi", "pods": "10"}, spec=tainted)]
    assert node_table(nodes_of(nodes, PODS), show_labels=True) == [
        "NODE   STATUS                     FREE CPU     FREE MEMORY      FREE PODS    FREE nvidia.com/gpu   TAINTS                 LABELS",
        "a      Ready                      6500m of 8   63.5Gi of 64Gi   108 of 110   2 of 8                -                      gpu=h100,rack=r1",
        "b      Ready,SchedulingDisabled   4 of 4       500Mi of 500Mi   10 of 10     0 of 0                team=blue:NoSchedule   gpu=h100,rack=r1",
    ]


def test_free_amounts_are_never_negative() -> None:
    lacking = of("a", {"cpu": "2", "pods": "110", "nvidia.com/gpu": "4"})  # two of its GPUs have failed
    (_, row) = node_table(nodes_of([lacking], PODS), show_labels=False)
    assert row.split()[-4:] == ["0", "of", "4", "-"]


def test_node_table_shows_capacity_without_pods() -> None:
    assert node_table([], show_labels=False) == []
    sick = of("a", {"cpu": "8"}, status={"allocatable": {"cpu": "8"}})
    assert node_table(nodes_of([sick], None), show_labels=False) == [
        "NODE   STATUS     CPU   MEMORY   PODS   TAINTS",
        "a      NotReady   8     0        0      -",
    ]


def test_node_description_has_labels_conditions_and_pods() -> None:
    (node_a,) = nodes_of([of("a", GPUS)], PODS)
    assert [*describe_node(node_a)] == [
        "a:",
        "  Labels:",
        "    gpu=h100",
        "    rack=r1",
        "  Conditions:",
        "    Ready is True",
        "  Free:",
        "    cpu: 6500m of 8",
        "    ephemeral-storage: 100Gi of 100Gi",
        "    memory: 63.5Gi of 64Gi",
        "    nvidia.com/gpu: 2 of 8",
        "    pods: 108 of 110",
        "  Pods:",
        "    prod/web-0: cpu 1500m, memory 512Mi, nvidia.com/gpu 6",
        "    prod/web-0-1: no requests",
    ]
