"""Tests the volume claims of StatefulSet pods."""

import pytest
from tests.unit.localkube.controllers.objects import build_pod, build_statefulset

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.controllers.statefulset import podclaims

TEMPLATE = {"metadata": {"name": "data", "labels": {"tier": "x"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}
POD = build_pod("web-0")


def build_set(scaled: str = "Retain", deleted: str = "Retain") -> JSONObject:
    """Build a StatefulSet with one volume claim template and this retention policy."""
    policy = {"whenScaled": scaled, "whenDeleted": deleted}
    return build_statefulset(volumeClaimTemplates=[TEMPLATE], persistentVolumeClaimRetentionPolicy=policy)


def build_claim(*owners: JSONObject) -> JSONObject:
    """Build an existing volume claim of web-0."""
    metadata = {"name": "data-web-0", "namespace": "default", "uid": "claim", "resourceVersion": "3"}
    return {"metadata": metadata | ({"ownerReferences": list(owners)} if owners else {})}


BY_SET = meta.controller_reference(build_set())
BY_POD = meta.controller_reference(POD)


def test_claims_have_labels_of_template_and_selector() -> None:
    [claim] = podclaims.build_claims(build_set(), "web-0")
    assert claim == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-web-0", "namespace": "default", "labels": {"tier": "x", "app": "web"}},
        "spec": {"accessModes": ["ReadWriteOnce"]},
    }


def test_new_claim_belongs_to_the_set_if_when_deleted_is_delete() -> None:
    [claim] = podclaims.build_claims(build_set(deleted="Delete"), "web-0")
    assert claim["metadata"]["ownerReferences"] == [BY_SET]


@pytest.mark.parametrize(
    ("scaled", "deleted", "wanted", "before", "after"),
    [
        pytest.param("Retain", "Retain", True, [BY_SET], [], id="retain: nobody"),
        pytest.param("Retain", "Delete", True, [], [BY_SET], id="whenDeleted: the set"),
        pytest.param("Retain", "Delete", False, [], [BY_SET], id="whenDeleted: also below the scale"),
        pytest.param("Delete", "Retain", False, [], [BY_POD], id="whenScaled: the condemned pod"),
        pytest.param("Delete", "Retain", True, [BY_POD], [], id="whenScaled: not a wanted one"),
        pytest.param("Delete", "Delete", True, [BY_POD], [BY_SET], id="both: the set while wanted"),
        pytest.param("Delete", "Delete", False, [BY_SET], [BY_POD], id="both: the pod when condemned"),
    ],
)
def test_retention_policy_sets_the_owners_of_claims(
    *, scaled: str, deleted: str, wanted: bool, before: list[JSONObject], after: list[JSONObject]
) -> None:
    known = {"data-web-0": build_claim(*before)}
    [patch] = podclaims.retention_patches(build_set(scaled, deleted), POD, is_desired=wanted, claims=known)
    assert patch.patch["metadata"] == {"uid": "claim", "resourceVersion": "3", "ownerReferences": after}


def test_correct_claims_are_not_patched() -> None:
    known = {"data-web-0": build_claim(dict(BY_SET))}
    assert podclaims.retention_patches(build_set(deleted="Delete"), POD, is_desired=True, claims=known) == []


def test_claims_of_a_different_controller_are_not_patched() -> None:
    foreign = {"kind": "Other", "name": "x", "uid": "other", "controller": True}
    known = {"data-web-0": build_claim(foreign)}
    assert podclaims.retention_patches(build_set(deleted="Delete"), POD, is_desired=True, claims=known) == []
