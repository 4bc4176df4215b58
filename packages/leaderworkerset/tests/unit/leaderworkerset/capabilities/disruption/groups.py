"""Builds groups with their disruption budgets."""

from typing import Any

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.capabilities.disruption.groupbudget import ProtectedGroup

SIZE = 2


def budget(*, least: int = SIZE, healthy: int = SIZE, observed: bool = True, disrupted: bool = False) -> JSONObject:
    """Return a budget. By default, it is closed and belongs to a complete group."""
    status: JSONObject = {"observedGeneration": 3 if observed else 2, "currentHealthy": healthy}
    if disrupted:
        status["disruptedPods"] = {"web-0": "2026-01-01T00:00:00Z"}
    return {"metadata": {"generation": 3}, "spec": {"minAvailable": least}, "status": status}


def group(label: str, *, present: bool = True, wanted: bool = False, **fields: Any) -> ProtectedGroup:
    """Return a group with this budget."""
    return ProtectedGroup(
        label=label, size=SIZE, min_available=SIZE, is_present=present, must_move=wanted, budget=budget(**fields)
    )


def opened(label: str, *, wanted: bool = False, **fields: Any) -> ProtectedGroup:
    """Return a group whose budget is open."""
    return group(label, wanted=wanted, least=0, **fields)
