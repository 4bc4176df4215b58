"""Tests cordoned nodes, and the pods that must be moved from them (docs/adr/0023)."""

from typing import Any

import pytest

from kuberuntime.objects import placement
from leaderworkerset.capabilities.moves.closednodes import closing_taints, must_be_moved

TAINT = "example.com/maintenance"
OURS = {"key": TAINT, "effect": "NoSchedule"}
OTHER = {"key": "example.com/gpu", "effect": "NoSchedule"}
EVICTS = {"key": "example.com/broken", "effect": "NoExecute"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def node(*taints: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "node-7"}, "spec": {"taints": list(taints)} | spec}


def pod(*tolerations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web-0"}, "spec": {"tolerations": list(tolerations)}} | fields


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (node(), ()),
        ({"metadata": {"name": "node-7"}}, ()),
        (node(unschedulable=True), (placement.CORDONED,)),
        (node(OURS, OTHER), (OURS,)),
        (node({"key": TAINT, "effect": "PreferNoSchedule"}), ()),
        (node(EVICTS, OURS), (EVICTS, OURS)),
        (node(UNREACHABLE), ()),
    ],
    ids=["open", "empty", "cordoned", "tainted", "a preference", "evicting", "not reachable"],
)
def test_cordon_taint_and_evictions_close_a_node(found: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert closing_taints(found, TAINT) == expected


def test_taint_does_not_close_a_node_when_not_configured() -> None:
    assert closing_taints(node(OURS), "") == ()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod(), True),
        (pod({"operator": "Exists"}), False),
        (pod({"key": TAINT, "operator": "Exists"}), True),
        (pod({"operator": "Exists", "tolerationSeconds": 60}), True),
        (pod(status={"phase": "Succeeded"}), False),
        (pod(metadata={"name": "web-0", "deletionTimestamp": "2026-01-01T00:00:00Z"}), False),
    ],
    ids=["any", "tolerates all", "tolerates one of two", "for a minute", "ended", "ends"],
)
def test_pod_must_leave_unless_it_tolerates_the_node(found: dict[str, Any], expected: bool) -> None:
    assert must_be_moved(found, (placement.CORDONED, OURS)) is expected
