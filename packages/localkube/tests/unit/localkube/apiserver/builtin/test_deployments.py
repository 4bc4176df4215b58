"""Tests that Deployments and ReplicaSets behave as in kube-apiserver."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[[str], Any]

LABELS = {"app": "web"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}


def workload(**fields: Any) -> dict[str, Any]:
    return {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE} | fields}


def test_new_deployment_receives_defaults(api: Make) -> None:
    found = api("deployments.apps").create(workload())
    spec = {name: value for name, value in found["spec"].items() if name not in {"template", "selector"}}
    assert spec == {
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert found["spec"]["template"]["spec"]["schedulerName"] == "default-scheduler"
    assert found["status"] == {}
    assert found["metadata"]["generation"] == 1


def test_new_replica_set_receives_defaults(api: Make) -> None:
    found = api("replicasets.apps").create(workload())
    assert found["spec"]["replicas"] == 1
    assert found["status"] == {"replicas": 0}


@pytest.mark.parametrize(
    ("plural", "change", "generation"),
    [
        ("deployments.apps", {"replicas": 2}, 2),
        ("replicasets.apps", {"replicas": 2}, 2),
        ("deployments.apps", {}, 1),
    ],
)
def test_spec_change_increments_the_generation(api: Make, plural: str, change: Any, generation: int) -> None:
    kind = api(plural)
    old = kind.create(workload())
    assert kind.update(old, {"spec": old["spec"] | change})["metadata"]["generation"] == generation


def test_annotation_increments_the_generation_except_by_status(api: Make) -> None:
    kind = api("deployments.apps")
    old = kind.create(workload())
    noted = old | {"metadata": old["metadata"] | {"annotations": {"note": "x"}}}
    assert kind.update(old, noted)["metadata"]["generation"] == 2
    assert kind.kind.prepare("status", noted, old)["metadata"] == noted["metadata"]


ROLLING = "spec.strategy.rollingUpdate"


@pytest.mark.parametrize(
    ("fields", "fragment"),
    [
        ({"replicas": -1}, "spec.replicas: Invalid value: -1"),
        ({"progressDeadlineSeconds": 5, "minReadySeconds": 5}, "must be greater than minReadySeconds"),
        ({"selector": {}}, "empty selector is invalid for deployment"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "`selector` does not match template `labels`"),
        ({"strategy": {"type": "Often"}}, 'Unsupported value: "Often": supported values: "Recreate", "RollingUpdate"'),
        ({"strategy": {"type": "Recreate", "rollingUpdate": {}}}, f"{ROLLING}: Forbidden"),
        ({"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}}}, "may not be 0 when `maxSurge` is 0"),
        ({"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}}, "must not be greater than 100%"),
        ({"strategy": {"rollingUpdate": {"maxSurge": "many"}}}, f"{ROLLING}.maxSurge: Invalid value"),
        ({"strategy": {"rollingUpdate": {"maxSurge": -1}}}, f"{ROLLING}.maxSurge: Invalid value: -1"),
    ],
)
def test_invalid_deployment_is_rejected(api: Make, fields: Any, fragment: str) -> None:
    assert [error for error in api("deployments.apps").errors(workload(**fields)) if fragment in error]


@pytest.mark.parametrize("plural", ["deployments.apps", "replicasets.apps"])
def test_selector_is_immutable(api: Make, plural: str) -> None:
    kind = api(plural)
    old = kind.create(workload())
    assert kind.errors(workload()) == []
    spec = old["spec"] | {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
    assert any("spec.selector" in error and "immutable" in error for error in kind.update_faults(old, {"spec": spec}))
