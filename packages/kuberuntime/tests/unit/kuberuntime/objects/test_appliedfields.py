"""Tests that an apply is skipped only if it would not change the object."""

from typing import Any

import pytest

from kuberuntime.objects.appliedfields import is_applied, without_account
from kuberuntime.objects.meta import JSONObject

WANTED: JSONObject = {
    "metadata": {"labels": {"app": "x"}, "annotations": {}},
    "spec": {
        "replicas": 2,
        "paused": False,
        "dropped": 1,
        "ports": [{"port": 80, "name": "web"}],
        "finalizers": ["keep"],
        "resources": {"limits": {}},
    },
}

OWNED: JSONObject = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:dropped": {},
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}},
        "f:finalizers": {'v:"keep"': {}},
        "f:resources": {},
    },
}


def stored(owned: JSONObject = OWNED, **spec: Any) -> JSONObject:
    live = {"replicas": 2, "ports": [{"port": 80, "name": "web", "protocol": "TCP"}], "finalizers": ["keep"], "more": 1}
    entry = {"manager": "me", "operation": "Apply", "fieldsV1": owned}
    status = {"manager": "me", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}}
    metadata = {"labels": {"app": "x", "other": "y"}, "managedFields": [entry, status]}
    return {"metadata": metadata, "spec": live | spec, "status": {}}


def owning(**spec: Any) -> JSONObject:
    return OWNED | {"f:spec": OWNED["f:spec"] | spec}


@pytest.mark.parametrize(
    ("live", "is_same"),
    [
        (stored(), True),
        (stored(replicas=3), False),
        (stored(paused=True), False),
        (stored(replicas=True), False),
        (stored(ports=[]), False),
        (stored(ports=[{"port": 81, "name": "web"}]), False),
        (stored(dropped=2), False),
        (stored(owning(**{"f:former": {}})), False),
        (stored(owning(**{"f:ports": {'k:{"port":81}': {".": {}}}})), False),
        (stored(owning(**{"f:finalizers": {'v:"former"': {}}})), False),
        (stored(owning(**{"f:finalizers": {"i:0": {}}})), True),
        (stored(owning(**{"f:finalizers": {"i:1": {}}})), False),
        (stored(owning(**{"f:replicas": {"i:0": {}}})), False),
        (stored({}), False),
        (stored() | {"metadata": {"labels": {"app": "x"}}}, False),
    ],
    ids=[
        "as applied",
        "another value",
        "another value of a default",
        "another type",
        "an item less",
        "another item",
        "another value of a field that was dropped",
        "a further field is owned",
        "a further item is owned",
        "a further value is owned",
        "a position is owned",
        "a further position is owned",
        "a value is owned as a list",
        "fields are not owned and absent",
        "nothing is owned",
    ],
)
def test_apply_is_skipped_only_if_it_changes_nothing(live: JSONObject, *, is_same: bool) -> None:
    assert is_applied(WANTED, live, "me") is is_same


def test_apply_of_a_different_manager_is_not_skipped() -> None:
    assert not is_applied(WANTED, stored(), "another")


def workload(**spec: str) -> JSONObject:
    return {"kind": "StatefulSet", "spec": {"replicas": 1, "template": {"spec": {"containers": [], **spec}}}}


@pytest.mark.parametrize(
    ("owned", "account", "removed"),
    [({}, "team", True), ({"f:serviceAccountName": {}}, "team", False), ({}, "", False)],
)
def test_account_without_an_owner_is_removed(owned: JSONObject, account: str, removed: bool) -> None:
    fields = {"f:spec": {"f:template": {"f:spec": owned}}}
    stored = workload(serviceAccountName=account, serviceAccount=account) | {
        "metadata": {"managedFields": [{"manager": "other", "fieldsV1": fields}]}
    }
    expected = workload(serviceAccountName="", serviceAccount="")
    assert without_account(workload(), stored) == (expected if removed else None)


def test_account_that_is_desired_stays() -> None:
    stored = workload(serviceAccountName="team", serviceAccount="team")
    assert without_account(workload(serviceAccountName="team"), stored) is None
    assert without_account({"kind": "Service", "spec": {}}, {"kind": "Service", "spec": {}}) is None
