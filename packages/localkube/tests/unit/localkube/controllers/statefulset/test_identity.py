"""Tests the identity of StatefulSet pods."""

import pytest
from tests.unit.localkube.controllers.objects import build_pod, build_statefulset, build_template

from localkube.controllers.statefulset import identity, revisions


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web-0", ("web", 0)),
        ("web-0-12", ("web-0", 12)),
        ("web", None),
        ("web-", None),
        ("web-99999999999", None),
    ],
)
def test_pod_names_are_split_at_the_last_dash(name: str, expected: tuple[str, int] | None) -> None:
    assert identity.parse_pod_name(name) == expected


def test_pod_of_a_different_set_is_not_a_member() -> None:
    assert identity.is_member(build_statefulset(), build_pod("web-3"))
    assert not identity.is_member(build_statefulset(), build_pod("web-0-3"))


def test_built_pod_has_its_identity() -> None:
    template = build_template("v1")
    template["metadata"] |= {"annotations": {"note": "x"}}
    statefulset = build_statefulset(template=template)
    revision = revisions.build(statefulset, 1, 0)
    assert identity.build_pod(statefulset, revision, 2) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-2",
            "generateName": "web-",
            "namespace": "default",
            "labels": {
                "app": "web",
                "statefulset.kubernetes.io/pod-name": "web-2",
                "apps.kubernetes.io/pod-index": "2",
                "controller-revision-hash": revision["metadata"]["name"],
            },
            "annotations": {"note": "x"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "StatefulSet",
                    "name": "web",
                    "uid": "set-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"containers": [{"name": "main", "image": "v1"}], "hostname": "web-2", "subdomain": "web"},
    }


def test_claim_volumes_replace_template_volumes() -> None:
    template = build_template("v1")
    template["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    statefulset = build_statefulset(template=template, volumeClaimTemplates=[{"metadata": {"name": "data"}}])
    pod = identity.build_pod(statefulset, revisions.build(statefulset, 1, 0), 0)
    assert pod["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
        {"name": "tmp", "emptyDir": {}},
    ]
