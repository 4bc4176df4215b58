"""Tests which nodes are being drained, by pod."""

from typing import Any

import pytest

from leaderworkerset.capabilities.disruption import reconcile

GPU = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
LEAVING = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
SOFT = {"key": "soft", "effect": "PreferNoSchedule"}
TOLERATES_GPU = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("node", "is_closed", "is_wanted"),
    [
        ({}, False, False),
        ({"taints": [SOFT]}, False, False),
        ({"taints": [GPU]}, True, False),
        ({"taints": [GPU, LEAVING]}, True, True),
        ({"taints": [{"key": "node", "effect": "NoExecute"}]}, True, True),
        ({"unschedulable": True}, True, True),
    ],
)
def test_node_is_closed_when_it_would_not_accept_the_pod(
    node: dict[str, Any], is_closed: bool, is_wanted: bool
) -> None:
    assert reconcile.is_closed({"spec": node}) == is_closed
    assert reconcile.rejects_pod({"spec": node}, {"spec": TOLERATES_GPU}) == is_wanted
