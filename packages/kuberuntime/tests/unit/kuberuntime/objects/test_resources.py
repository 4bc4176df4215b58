"""Tests the API paths of resources, and their names in errors."""

import pytest

from kuberuntime.objects.resources import NODES, PODS, STATEFULSETS, Resource


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("ns", "web-0", "log"), "/api/v1/namespaces/ns/pods/web-0/log"),
        (STATEFULSETS, ("ns",), "/apis/apps/v1/namespaces/ns/statefulsets"),
        (NODES, ("ignored", "node-0"), "/api/v1/nodes/node-0"),
    ],
)
def test_path_has_group_version_namespace_and_name(resource: Resource, arguments: tuple[str, ...], path: str) -> None:
    assert resource.path(*arguments) == path


def test_group_resource_and_api_version_are_qualified() -> None:
    assert (PODS.group_resource, STATEFULSETS.group_resource) == ("pods", "statefulsets.apps")
    assert (PODS.api_version, STATEFULSETS.api_version) == ("v1", "apps/v1")
