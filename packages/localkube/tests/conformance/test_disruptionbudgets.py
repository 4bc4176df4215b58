"""Tests which PodDisruptionBudgets are rejected, and which changes increment the generation."""

from typing import Any

import pytest
from tests.conformance.conftest import CheckSame
from tests.conformance.objects import named
from tests.conformance.transcript import Session

from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS

SELECTOR = {"matchLabels": {"app": "none"}}
SPECS: tuple[dict[str, Any], ...] = (
    {"minAvailable": 1, "maxUnavailable": 1, "selector": SELECTOR},
    {"minAvailable": -1, "selector": SELECTOR},
    {"maxUnavailable": "101%", "selector": SELECTOR},
    {"maxUnavailable": "half", "selector": SELECTOR},
    {"maxUnavailable": "0%", "selector": SELECTOR, "unhealthyPodEvictionPolicy": "Never"},
    {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
    {"selector": {}},
    {},
)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_disruption_budgets_are_admitted_alike(same: CheckSame, spec: dict[str, Any]) -> None:
    async def sequence(session: Session) -> None:
        await session.create(POD_DISRUPTION_BUDGETS, named("one", spec=spec), dryRun="All")

    same(sequence)


def test_spec_change_increments_the_generation(same: CheckSame) -> None:
    async def sequence(session: Session) -> None:
        budget = named("one", spec={"minAvailable": 1, "selector": SELECTOR})
        await session.create(POD_DISRUPTION_BUDGETS, budget)
        await session.patch(POD_DISRUPTION_BUDGETS, "one", {"spec": {"minAvailable": 2}}, dryRun="All")
        await session.patch(POD_DISRUPTION_BUDGETS, "one", {"metadata": {"labels": {"a": "b"}}}, dryRun="All")

    same(sequence)
