"""Tests cordoned nodes, and the pods that must be moved from them (docs/adr/0023)."""

from typing import Any

import pytest
from testkit import objects
from tests import builders

from kuberuntime.objects import placement
from leaderworkerset.capabilities.moves.closednodes import closing_taints, must_be_moved

TAINT = "example.com/maintenance"
OURS = {"key": TAINT, "effect": "NoSchedule"}
OTHER = {"key": "example.com/gpu", "effect": "NoSchedule"}
EVICTS = {"key": "example.com/broken", "effect": "NoExecute"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (builders.node(), ()),
        ({"metadata": {"name": "node-7"}}, ()),
        (builders.node(unschedulable=True), (placement.CORDONED,)),
        (builders.node(taints=[OURS, OTHER]), (OURS,)),
        (builders.node(taints=[{"key": TAINT, "effect": "PreferNoSchedule"}]), ()),
        (builders.node(taints=[EVICTS, OURS]), (EVICTS, OURS)),
        (builders.node(taints=[UNREACHABLE]), ()),
    ],
    ids=["open", "empty", "cordoned", "tainted", "a preference", "evicting", "not reachable"],
)
def test_cordon_taint_and_evictions_close_a_node(found: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert closing_taints(found, TAINT) == expected


def test_taint_does_not_close_a_node_when_not_configured() -> None:
    assert closing_taints(builders.node(taints=[OURS]), "") == ()


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (objects.pod(), True),
        (objects.pod(spec={"tolerations": [{"operator": "Exists"}]}), False),
        (objects.pod(spec={"tolerations": [{"key": TAINT, "operator": "Exists"}]}), True),
        (objects.pod(spec={"tolerations": [{"operator": "Exists", "tolerationSeconds": 60}]}), True),
        (objects.pod(phase="Succeeded"), False),
        (objects.pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), False),
    ],
    ids=["any", "tolerates all", "tolerates one of two", "for a minute", "ended", "ends"],
)
def test_pod_must_leave_unless_it_tolerates_the_node(found: dict[str, Any], expected: bool) -> None:
    assert must_be_moved(found, (placement.CORDONED, OURS)) is expected
