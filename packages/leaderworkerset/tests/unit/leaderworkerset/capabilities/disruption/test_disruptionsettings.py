"""Tests the maximum number of unavailable groups in the annotation and the manager setting."""

from typing import Any

import pytest
from tests import builders

from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSetSpec, decode
from leaderworkerset.capabilities.disruption import disruptionsettings as settings
from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings


def spec(replicas: int = 8, **rollout: Any) -> LeaderWorkerSetSpec:
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rollout}
    return decode(builders.leaderworkerset_object(replicas=replicas, spec={"rolloutStrategy": strategy})).spec


@pytest.mark.parametrize(
    ("text", "groups"),
    [("off", None), ("0", 0), ("3", 3), ("25%", 2), ("30%", 3), ("1%", 1), ("0%", 0), ("100%", 8), ("rollout", 2)],
)
def test_budget_annotation_gives_the_number_of_groups(text: str, groups: int | None) -> None:
    configured = DisruptionSettings(budget="5")
    found = settings.limit(configured, {labels.DISRUPTION_BUDGET: text}, spec(maxUnavailable=2))
    assert found == groups


@pytest.mark.parametrize("text", ["", "-1", "1.5", "101%", "all", "1000001", "9" * 5000])
def test_invalid_budget_annotation_is_rejected_and_ignored(text: str) -> None:
    (error,) = settings.errors(builders.annotated({labels.DISRUPTION_BUDGET: text}))
    assert (error.path, error.value) == (f"metadata.annotations.{labels.DISRUPTION_BUDGET}", text)
    assert settings.ALLOWED in str(error)
    assert settings.limit(DisruptionSettings(budget="5"), {labels.DISRUPTION_BUDGET: text}, spec()) == 5


@pytest.mark.parametrize(("text", "warns"), [("0", True), ("0%", True), ("00", True), ("1", False), ("off", False)])
def test_budget_of_zero_groups_causes_a_warning(text: str, warns: bool) -> None:
    assert bool(list(settings.warnings({labels.DISRUPTION_BUDGET: text}))) == warns
    assert not list(settings.warnings({}))


def test_manager_setting_applies_without_the_annotation() -> None:
    assert settings.limit(DisruptionSettings(), {}, spec()) is None
    assert settings.limit(DisruptionSettings(budget="rollout"), {}, spec()) == 1
    assert not list(settings.errors(builders.annotated({})))
    assert not list(settings.errors(builders.annotated({labels.DISRUPTION_BUDGET: "25%"})))


def test_surge_only_rollout_permits_one_eviction() -> None:
    """Evictions do not create surge groups, so a limit of 0 would prevent all drains."""
    only_surge = spec(maxUnavailable=0, maxSurge=1)
    assert settings.limit(DisruptionSettings(budget="rollout"), {}, only_surge) == 1
