"""Tests the names and labels of installed objects, which are used to find, replace and remove a manager."""

from kuberuntime.objects.resources import CLUSTER_ROLES, DEPLOYMENTS
from leaderworkerset.api import metadata


def test_installed_object_has_the_labels_of_an_installation() -> None:
    role = metadata.build(CLUSTER_ROLES, "lws-role", rules=[])
    assert role == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {
            "name": "lws-role",
            "labels": {"app.kubernetes.io/name": "lws", "app.kubernetes.io/instance": "lws"},
        },
        "rules": [],
    }
    assert metadata.is_installed(role)
    assert metadata.build(DEPLOYMENTS, "lws", "lws-system")["metadata"]["namespace"] == "lws-system"


def test_labeled_object_keeps_its_own_labels() -> None:
    obj = {"metadata": {"name": "x", "labels": {"team": "serving"}}}
    assert not metadata.is_installed(obj)
    labeled = metadata.with_labels(obj)
    assert labeled["metadata"] == {"name": "x", "labels": {"team": "serving", **metadata.LABELS}}
    assert metadata.is_installed(labeled)
