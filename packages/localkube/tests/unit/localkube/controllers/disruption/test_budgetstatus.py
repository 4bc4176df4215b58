"""Tests the counts of healthy pods and permitted evictions in the status of PodDisruptionBudgets."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from testkit import objects

from kuberuntime.objects import timestamps
from localkube.controllers.disruption import budgetstatus
from localkube.controllers.disruption.budgetstatus import ObservedBudget

NOW = datetime(2026, 1, 1, tzinfo=UTC)
pod = partial(objects.pod, ready=True)


def build(spec: dict[str, Any], *pods: dict[str, Any], scale: int = 4, **kept: Any) -> dict[str, Any]:
    budget = {"metadata": {"generation": 3}, "spec": spec, "status": kept.pop("status", {})}
    failure = kept.pop("failure", "")
    return budgetstatus.build(ObservedBudget(budget=budget, pods=pods, scale=scale, failure=failure, now=NOW))


def numbers(status: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return the expected, desired, healthy and allowed counts."""
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    expected, wanted, healthy, allowed = (status[field] for field in fields)
    return expected, wanted, healthy, allowed


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"minAvailable": 1}, (3, 1, 2, 1)),
        ({"minAvailable": 3}, (3, 3, 2, 0)),
        ({"minAvailable": "30%"}, (4, 2, 2, 0)),
        ({"maxUnavailable": 1}, (4, 3, 2, 0)),
        ({"maxUnavailable": 3}, (4, 1, 2, 1)),
        ({"maxUnavailable": "100%"}, (4, 0, 2, 2)),
        ({"maxUnavailable": 9}, (4, 0, 2, 2)),
        ({}, (0, 0, 2, 0)),
    ],
)
def test_budget_uses_current_or_expected_pods(spec: dict[str, Any], found: tuple[int, int, int, int]) -> None:
    """A number is compared with the existing pods. A percentage and `maxUnavailable` use the expected pods."""
    status = build(spec, pod("a"), pod("b"), pod("c", ready=False))
    assert numbers(status) == found
    condition = status["conditions"][0]
    assert condition["reason"] == ("SufficientPods" if found[3] else "InsufficientPods")
    assert condition["observedGeneration"] == status["observedGeneration"] == 3


def test_pods_being_deleted_are_not_healthy() -> None:
    now, late = timestamps.render(NOW), timestamps.render(NOW - timedelta(seconds=121))
    granted = {"disruptedPods": {"a": now, "b": late, "c": now, "gone": now}}
    pods = (pod("a"), pod("b"), pod("c", metadata={"deletionTimestamp": timestamps.render(NOW)}), pod("d"))
    status = build({"minAvailable": 1}, *pods, status=granted)
    assert numbers(status) == (4, 1, 2, 1)
    assert status["disruptedPods"] == {"a": now}
    assert budgetstatus.next_check(status, NOW) == 121
    assert budgetstatus.next_check(build({"minAvailable": 1}), NOW) is None


def test_uncountable_budget_allows_no_eviction() -> None:
    known = build({"maxUnavailable": 1}, pod("a"), scale=1)
    status = build({"maxUnavailable": 1}, pod("a"), status=known, failure="found no controllers")
    assert status["disruptionsAllowed"] == 0
    assert status["conditions"][0]["reason"] == "SyncFailed"
    assert build({"minAvailable": 0}, pod("a"), failure="found no controllers")["disruptionsAllowed"] == 1


def test_condition_keeps_its_time_while_it_is_unchanged() -> None:
    old = [{"type": "Other"}, {"type": "DisruptionAllowed", "status": "True", "lastTransitionTime": "before"}]
    stays = build({"minAvailable": 0}, pod("a"), status={"conditions": old})["conditions"]
    assert (stays[0], stays[1]["lastTransitionTime"]) == ({"type": "Other"}, "before")
    turns = build({"minAvailable": 1}, pod("a"), status={"conditions": old})["conditions"]
    assert turns[1]["lastTransitionTime"] == timestamps.render(NOW)
