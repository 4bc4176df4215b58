"""Tests the windows, policies and tolerances that limit the scaling rate of an autoscaler."""

from datetime import timedelta
from typing import Any

import pytest
from tests.unit.localkube.controllers.objects import NOW

from localkube.controllers.autoscaling import scalingbehavior
from localkube.controllers.autoscaling.scalingbehavior import History, ReplicaRecord, ScalingBehavior


def scaler(behavior: Any = None, least: int = 1, most: int = 100) -> ScalingBehavior:
    return scalingbehavior.read_behavior({"spec": {"minReplicas": least, "maxReplicas": most, "behavior": behavior}})


def ago(seconds: float, replicas: int) -> ReplicaRecord:
    return ReplicaRecord(NOW - timedelta(seconds=seconds), replicas)


def policy(kind: str, value: int, seconds: int = 60) -> dict[str, Any]:
    return {"type": kind, "value": value, "periodSeconds": seconds}


def both(rules: dict[str, Any]) -> dict[str, Any]:
    return {"scaleUp": rules, "scaleDown": rules}


def test_scale_down_is_delayed_and_scale_up_is_immediate() -> None:
    history = History((ago(301, 9), ago(299, 7), ago(10, 5)))
    assert scalingbehavior.stabilize(scaler(), 2, 8, history, NOW)[:2] == (7, "ScaleDownStabilized")
    assert scalingbehavior.stabilize(scaler(), 9, 8, history, NOW)[:2] == (9, "ReadyForNewScale")
    assert scalingbehavior.stabilize(scaler(), 2, 8, History(), NOW)[:2] == (2, "ReadyForNewScale")


def test_scale_up_window_uses_the_lowest_recommendation() -> None:
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 60}}
    assert scalingbehavior.stabilize(scaler(behavior), 9, 4, History((ago(30, 6),)), NOW)[:2] == (
        6,
        "ScaleUpStabilized",
    )
    assert scalingbehavior.stabilize(scaler(behavior), 9, 4, History((ago(30, 2),)), NOW)[:2] == (
        4,
        "ScaleUpStabilized",
    )


@pytest.mark.parametrize(
    ("behavior", "current", "wanted", "changed", "found"),
    [
        (None, 1, 9, (), (5, "ScaleUpLimit")),
        (None, 10, 99, (), (20, "ScaleUpLimit")),
        (None, 10, 12, (), (12, "DesiredWithinRange")),
        (None, 10, 1, (), (1, "DesiredWithinRange")),
        (both({"policies": [policy("Pods", 2)]}), 5, 9, (), (7, "ScaleUpLimit")),
        (both({"policies": [policy("Pods", 2)]}), 5, 9, (ago(30, 2),), (5, "ScaleUpLimit")),
        (both({"policies": [policy("Pods", 2)]}), 5, 9, (ago(61, 2),), (7, "ScaleUpLimit")),
        (both({"policies": [policy("Pods", 2)]}), 5, 1, (ago(30, -1),), (4, "ScaleDownLimit")),
        (both({"policies": [policy("Pods", 2)]}), 5, 1, (ago(30, 5),), (1, "DesiredWithinRange")),
        (both({"policies": [policy("Percent", 50)]}), 5, 9, (), (8, "ScaleUpLimit")),
        (both({"policies": [policy("Percent", 50)]}), 5, 1, (), (2, "ScaleDownLimit")),
        (both({"policies": [policy("Pods", 1), policy("Percent", 60)]}), 5, 9, (), (8, "ScaleUpLimit")),
        (
            both({"selectPolicy": "Min", "policies": [policy("Pods", 1), policy("Percent", 60)]}),
            5,
            9,
            (),
            (6, "ScaleUpLimit"),
        ),
        (
            both({"selectPolicy": "Min", "policies": [policy("Pods", 1), policy("Percent", 60)]}),
            5,
            1,
            (),
            (4, "ScaleDownLimit"),
        ),
        (both({"selectPolicy": "Disabled"}), 5, 9, (), (5, "ScaleUpLimit")),
        (both({"selectPolicy": "Disabled"}), 5, 1, (), (5, "ScaleDownLimit")),
    ],
)
def test_policies_limit_the_change_within_a_period(
    behavior: Any, current: int, wanted: int, changed: tuple[ReplicaRecord, ...], found: tuple[int, str]
) -> None:
    assert scalingbehavior.apply_limits(scaler(behavior), wanted, current, History(changed=changed), NOW)[:2] == found


def test_bounds_apply_before_the_rate() -> None:
    assert scalingbehavior.apply_limits(scaler(most=3), 9, 2, History(), NOW)[:2] == (3, "TooManyReplicas")
    assert scalingbehavior.apply_limits(scaler(least=2), 1, 4, History(), NOW)[:2] == (2, "TooFewReplicas")


def test_history_is_limited_to_the_configured_windows() -> None:
    behavior = both({"stabilizationWindowSeconds": 20, "policies": [policy("Pods", 1, 40)]})
    history = History((ago(21, 1), ago(19, 2)), (ago(41, 1), ago(39, 2), ago(-9, 3)))
    found = scalingbehavior.prune(history, scaler(behavior), NOW)
    assert [moment.replicas for moment in found.recommended] == [2]
    assert [moment.replicas for moment in found.changed] == [2]


def test_scaling_rules_have_their_own_tolerances() -> None:
    assert scaler().tolerances == (0.1, 0.1)
    assert scaler({"scaleUp": {"tolerance": "0"}, "scaleDown": {"tolerance": "250m"}}).tolerances == (0.25, 0.0)
