"""Tests the status of the `cluster` object."""

import pytest
from tests.unit.leaderworkerset.operator.clusters import LATER, NOW, PLACE, cluster, conditions, running

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.operator import operatorstatus
from leaderworkerset.operator.operatorspec import OperatorSettings
from leaderworkerset.operator.operatorstatus import SyncOutcome, may_become_available

COMPLETE = SyncOutcome()
DEFAULT = OperatorSettings()
DEPLOYMENT: JSONObject = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"namespace": "operators", "name": "lws-controller-manager"},
    "spec": {"replicas": 2},
}


def refresh(
    found: JSONObject,
    deployment: JSONObject | None,
    outcome: SyncOutcome = COMPLETE,
    wanted: OperatorSettings = DEFAULT,
) -> JSONObject:
    return operatorstatus.refresh(found, deployment, wanted, outcome, place=PLACE, now=NOW)


@pytest.mark.parametrize(
    ("deployment", "expected"),
    [
        (None, ("False", "DeploymentUnavailable")),
        (running(DEPLOYMENT | {"spec": {}}), ("False", "DeploymentUnavailable")),
        (running(DEPLOYMENT, available=1), ("False", "DeploymentUnavailable")),
        (running(DEPLOYMENT), ("True", "AsExpected")),
    ],
)
def test_available_requires_all_replicas(deployment: JSONObject | None, expected: tuple[str, str]) -> None:
    """`Available` requires that all replicas are available (R-OP-6)."""
    assert conditions(refresh(cluster(), deployment))["Available"] == expected


def test_differs_from_upstream_available_needs_webhooks() -> None:
    """The operator becomes available only after the API server has reached the manager's webhooks (R-OP-6, ADR 32)."""
    found = conditions(refresh(cluster(), running(DEPLOYMENT), SyncOutcome(unreachable="no endpoints")))
    assert found["Available"] == ("False", "WebhooksUnreachable")


@pytest.mark.parametrize(
    ("available", "said", "expected"),
    [(2, "False", True), (1, "False", False), (2, "True", False)],
    ids=["managers run", "one is missing", "it is known already"],
)
def test_webhooks_are_tried_before_available_becomes_true(available: int, said: str, *, expected: bool) -> None:
    """Afterwards, a Deployment with all managers is sufficient.

    Therefore, a slow API server does not change conditions.
    """
    observed = cluster() | {"status": {"conditions": [{"type": "Available", "status": said}]}}
    assert may_become_available(observed, running(DEPLOYMENT, available=available)) is expected


def test_status_has_counts_version_and_generations() -> None:
    """The status contains counts, the version and generations (R-OP-5, R-OP-8)."""
    status = refresh(cluster(), running(DEPLOYMENT))
    assert (status["readyReplicas"], status["version"], status["observedGeneration"]) == (2, "1.2.3", 3)
    assert status["generations"] == [
        {
            "group": "apps",
            "resource": "deployments",
            "namespace": "operators",
            "name": "lws-controller-manager",
            "lastGeneration": 5,
        }
    ]


def test_version_is_reported_when_it_runs() -> None:
    assert "version" not in refresh(cluster(), running(DEPLOYMENT, available=1))


def test_rollout_sets_progressing() -> None:
    """A rollout sets the `Progressing` condition (R-OP-6)."""
    found = conditions(refresh(cluster(), running(DEPLOYMENT, available=1)))
    assert found["Progressing"] == ("True", "RollingOut")


def test_unsupported_overrides_block_upgrades() -> None:
    """Unsupported overrides block upgrades (R-OP-41)."""
    found = refresh(cluster(), None, wanted=OperatorSettings(overrides={"x": 1}))
    assert conditions(found)["Upgradeable"] == ("False", "UnsupportedConfigOverrides")


def test_transition_times_change_with_the_status_only() -> None:
    """A different message does not change the transition times (R-OP-7)."""
    first = refresh(cluster(), None, SyncOutcome(error="one", is_complete=False))
    second = operatorstatus.refresh(
        cluster(status=first),
        None,
        OperatorSettings(),
        SyncOutcome(error="two", is_complete=False),
        place=PLACE,
        now=LATER,
    )
    third = operatorstatus.refresh(
        cluster(status=second), None, OperatorSettings(), SyncOutcome(), place=PLACE, now=LATER
    )
    found = [
        next(one for one in status["conditions"] if one["type"] == "TargetConfigControllerDegraded")
        for status in (first, second, third)
    ]
    assert [one["message"] for one in found] == ["one", "two", ""]
    assert [one["lastTransitionTime"] for one in found] == [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05Z",
        "2026-01-02T04:00:00Z",
    ]


def test_conditions_of_others_are_kept() -> None:
    """Conditions of other writers are retained (R-OP-7)."""
    theirs = {"type": "example.com/Theirs", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    status = refresh(cluster(status={"conditions": [theirs]}), None)
    assert status["conditions"][0] == theirs


def test_degraded_ends_with_a_complete_reconciliation() -> None:
    """A missing dependency is no longer reported after it is installed (R-OP-6)."""
    missing = refresh(cluster(), None, SyncOutcome(missing="cert-manager is missing", is_complete=False))
    waiting = refresh(cluster(status=missing), None, SyncOutcome(error="not issued", is_complete=False))
    assert conditions(waiting)["Degraded"] == ("True", "SyncError")
    assert {one["message"] for one in waiting["conditions"] if one["type"] == "Degraded"} == {"not issued"}
    assert conditions(refresh(cluster(status=waiting), None))["Degraded"] == ("False", "AsExpected")


def test_missing_deployment_clears_the_version() -> None:
    """The status of a removed operand contains neither a version nor a generation (R-OP-8)."""
    found = cluster()
    there = refresh(found, running(DEPLOYMENT))
    assert there["version"] == PLACE.version
    gone = refresh(cluster(status=there), None)
    assert not gone.keys() & {"version", "generations"}
    assert gone["readyReplicas"] == 0


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (SyncOutcome(), ("False", "AsExpected")),
        (SyncOutcome(unconfirmed=["a"]), ("False", "NotConfirmed")),
        (SyncOutcome(terminating=["a"]), ("True", "Annotated")),
        (SyncOutcome(terminating=["a"], unconfirmed=["b"]), ("True", "Annotated")),
    ],
)
def test_condition_names_definitions_that_would_be_deleted(outcome: SyncOutcome, expected: tuple[str, str]) -> None:
    """The message also contains the objects whose fields conflict (R-OP-30)."""
    status = refresh(cluster(), None, outcome)
    assert conditions(status)["DeletesDefinitions"] == expected
    (text,) = [one["message"] for one in status["conditions"] if one["type"] == "DeletesDefinitions"]
    assert all(name in text for name in (*outcome.terminating, *outcome.unconfirmed))
