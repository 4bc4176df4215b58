"""Tests the discovery of the resources that the garbage collector can delete."""

import asyncio

import pytest
from testkit.fakes import ScriptedTransport, respond

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from localkube.controllers.garbage import deletableresources

VERBS = ["create", "delete", "list", "watch"]


def test_preferred_version_of_a_group_is_first() -> None:
    old, new = ({"groupVersion": f"apps/{version}", "version": version} for version in ("v1beta1", "v1"))
    groups = {"groups": [{"name": "apps", "versions": [old, new], "preferredVersion": new}]}
    assert deletableresources.preferred_versions(groups) == ["apps/v1", "apps/v1beta1"]


@pytest.mark.parametrize(("older", "found"), [("things", {"things": "v1"}), ("rest", {"things": "v1", "rest": "v0"})])
def test_kind_served_only_by_another_version_is_discovered(older: str, found: dict[str, str]) -> None:
    """PodGroups are in a version of `scheduling.k8s.io` that does not contain PriorityClasses."""
    versions = [{"groupVersion": f"a.example/{name}"} for name in ("v1", "v0")]
    transport = ScriptedTransport(
        respond(200, {"groups": [{"versions": versions, "preferredVersion": versions[0]}]}),
        respond(200, {"groupVersion": "v1", "resources": []}),
        respond(200, {"groupVersion": "a.example/v1", "resources": [entry("things")]}),
        respond(200, {"groupVersion": "a.example/v0", "resources": [entry(older)]}),
    )

    discovered = asyncio.run(deletableresources.discover(Client(transport)))

    assert {one.plural: one.version for one in discovered} == found


def entry(plural: str) -> JSONObject:
    return {"name": plural, "kind": plural.title(), "namespaced": True, "verbs": VERBS}


def test_uncollectable_resources_are_omitted() -> None:
    answer = {
        "groupVersion": "apps/v1",
        "resources": [
            {"name": "statefulsets", "kind": "StatefulSet", "namespaced": True, "verbs": VERBS},
            {"name": "statefulsets/status", "kind": "StatefulSet", "namespaced": True, "verbs": VERBS},
            {"name": "reviews", "kind": "Review", "namespaced": False, "verbs": ["create"]},
        ],
    }
    assert list(deletableresources.parse_resources(answer)) == [Resource("apps", "v1", "statefulsets", "StatefulSet")]


def test_core_group_has_no_name() -> None:
    answer = {
        "groupVersion": "v1",
        "resources": [{"name": "nodes", "kind": "Node", "namespaced": False, "verbs": VERBS}],
    }
    assert list(deletableresources.parse_resources(answer)) == [Resource("", "v1", "nodes", "Node", namespaced=False)]
