"""Tests that StatefulSets and ControllerRevisions behave as in kube-apiserver."""

from collections.abc import Callable
from typing import Any

import pytest

from localkube.apiserver.patch import ownership
from localkube.apiserver.patch.apply import apply
from localkube.apiserver.patch.ownership import Writer

Api = Any
Make = Callable[[str], Api]

LABELS = {"app": "web"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
STATEFULSETS = "statefulsets.apps"


def statefulset(**fields: Any) -> dict[str, Any]:
    return {"spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, "serviceName": "web"} | fields}


def test_new_statefulset_receives_defaults(api: Make) -> None:
    found = api(STATEFULSETS).create(statefulset())
    spec = found["spec"]
    assert spec["replicas"] == 1
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert spec["revisionHistoryLimit"] == 10
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert spec["template"]["spec"]["schedulerName"] == "default-scheduler"
    assert "enableServiceLinks" not in spec["template"]["spec"], "only pods get what belongs to pods"
    assert found["status"] == {"replicas": 0, "availableReplicas": 0}
    assert found["metadata"]["generation"] == 1


def test_max_unavailable_is_dropped_without_its_feature_gate(api: Make) -> None:
    """The API server drops the field, as upstream does (T-11)."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2, "maxUnavailable": 3}}
    found = api(STATEFULSETS).create(statefulset(updateStrategy=strategy))
    assert found["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 2}


def test_empty_retention_policy_becomes_retain(api: Make) -> None:
    """A missing key is sent as an empty string (R-LSTS-2)."""
    policy = {"whenDeleted": "Delete", "whenScaled": ""}
    found = api(STATEFULSETS).create(statefulset(persistentVolumeClaimRetentionPolicy=policy))
    assert found["spec"]["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Delete", "whenScaled": "Retain"}


def test_containers_may_mount_claim_templates(api: Make) -> None:
    mounting = {"name": "c", "image": "x:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    template = TEMPLATE | {"spec": {"containers": [mounting]}}
    found = api(STATEFULSETS).create(statefulset(template=template, volumeClaimTemplates=[CLAIM]))
    assert "volumes" not in found["spec"]["template"]["spec"]


def test_claim_templates_receive_all_defaults(api: Make) -> None:
    found = api(STATEFULSETS).create(statefulset(volumeClaimTemplates=[CLAIM]))
    (claim,) = found["spec"]["volumeClaimTemplates"]
    assert (claim["kind"], claim["apiVersion"]) == ("PersistentVolumeClaim", "v1")
    assert claim["spec"]["volumeMode"] == "Filesystem"
    assert claim["status"] == {"phase": "Pending"}
    assert api(STATEFULSETS).update(found, {}) == found


# `packages/localkube/tests/conformance/test_updates.py` has what is recorded of kube-apiserver; here is the rest.
ERRORS = [
    (statefulset(template=TEMPLATE | {"spec": TEMPLATE["spec"] | {"activeDeadlineSeconds": 5}}), "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported"),
    (statefulset(persistentVolumeClaimRetentionPolicy={"whenScaled": "Maybe"}), 'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Maybe": supported values: "Retain", "Delete"'),
]  # fmt: skip


@pytest.mark.parametrize(("given", "text"), ERRORS, ids=[text[:50] for _, text in ERRORS])
def test_errors_use_the_texts_of_kube_apiserver(api: Make, given: dict[str, Any], text: str) -> None:
    assert text in api(STATEFULSETS).errors(given)


def test_only_some_fields_may_change(api: Make) -> None:
    sets = api(STATEFULSETS)
    stored = sets.create(statefulset())
    allowed = stored["spec"] | {"replicas": 5, "minReadySeconds": 3, "ordinals": {"start": 1}}
    assert sets.update_faults(stored, {"spec": allowed}) == []
    forbidden = (
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template',"
        " 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are"
        " forbidden"
    )
    assert sets.update_faults(stored, {"spec": stored["spec"] | {"serviceName": "other"}}) == [forbidden]


def test_applying_the_same_leader_set_writes_nothing(api: Make) -> None:
    """Each reconciliation applies the StatefulSet, but only a change may create a new resource version (R-LSTS-1)."""
    kind = api(STATEFULSETS).kind
    rolling = {"partition": 0, "maxUnavailable": 1}
    applied = statefulset(replicas=2, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    applied |= {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "namespace": "default"}}
    first, later = (Writer("lws", "Apply", "apps/v1", f"2026-01-01T00:00:0{second}Z") for second in (0, 1))
    stored = kind.prepare("create", apply(kind, None, applied, first, force=True), None)
    again = kind.prepare("update", apply(kind, stored, applied, later, force=True), stored)
    assert ownership.settle(stored, again) is stored


def test_generation_counts_spec_changes(api: Make) -> None:
    sets = api(STATEFULSETS)
    stored = sets.create(statefulset())
    labeled = stored | {"metadata": stored["metadata"] | {"labels": {"a": "b"}}}
    assert sets.kind.prepare("update", labeled, stored)["metadata"]["generation"] == 1
    assert sets.update(stored, {"spec": stored["spec"] | {"replicas": 2}})["metadata"]["generation"] == 2


def test_revision_data_is_kept_and_immutable(api: Make) -> None:
    """The order, null values and strings are preserved (R-REV-7).

    Therefore the data is encoded to the received bytes.
    """
    revisions = api("controllerrevisions.apps")
    data = {"spec": {"leaderWorkerTemplate": {"$patch": "replace", "workerTemplate": {"spec": {"containers": None}}}}}
    stored = revisions.create({"data": data, "revision": 1})
    assert stored["data"] == data
    assert "generation" not in stored["metadata"]
    errors = revisions.update_faults(stored, {"data": {}})
    assert errors == ["data: Invalid value: {}: field is immutable"]
    assert revisions.errors({"revision": 1}) == ["data: Required value: data is mandatory"]
