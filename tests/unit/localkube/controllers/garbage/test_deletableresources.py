"""Discovery, reduced."""

from kuberuntime.objects.resources import Resource
from localkube.controllers.garbage import deletableresources

VERBS = ["create", "delete", "list", "watch"]


def test_each_group_in_its_preferred_version() -> None:
    groups = {"groups": [{"name": "apps", "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}}]}
    assert deletableresources.preferred_versions(groups) == ["apps/v1"]


def test_what_cannot_be_collected_is_left_out() -> None:
    answer = {
        "groupVersion": "apps/v1",
        "resources": [
            {"name": "statefulsets", "kind": "StatefulSet", "namespaced": True, "verbs": VERBS},
            {"name": "statefulsets/status", "kind": "StatefulSet", "namespaced": True, "verbs": VERBS},
            {"name": "reviews", "kind": "Review", "namespaced": False, "verbs": ["create"]},
        ],
    }
    assert list(deletableresources.parse_resources(answer)) == [Resource("apps", "v1", "statefulsets", "StatefulSet")]


def test_the_core_group_has_no_name() -> None:
    answer = {
        "groupVersion": "v1",
        "resources": [{"name": "nodes", "kind": "Node", "namespaced": False, "verbs": VERBS}],
    }
    assert list(deletableresources.parse_resources(answer)) == [Resource("", "v1", "nodes", "Node", namespaced=False)]
