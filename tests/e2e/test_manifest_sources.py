"""Tests typical user manifests: several objects in any order, misspelled fields, and missing namespaces."""

import json
from pathlib import Path

import pytest
from tests.e2e.harness import SLEEP, LocalCluster, Shell, lws

from kuberuntime.objects.meta import JSONObject

pytestmark = [pytest.mark.slow, pytest.mark.sandbox]


def of(api_version: str, kind: str, name: str, **fields: object) -> JSONObject:
    """Build an object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def text(*objects: JSONObject) -> str:
    """Return several objects as one manifest."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


WIDGETS: JSONObject = of(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "widgets.example.org",
    spec={
        "group": "example.org",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
)


def test_objects_are_applied_and_deleted_in_dependency_order(cluster: LocalCluster) -> None:
    given = text(of("example.org/v1", "Widget", "first"), lws("web", SLEEP), WIDGETS, of("v1", "Namespace", "shop"))
    applied = cluster.lws("apply", "-n", "shop", "-f", "-", text=given)
    assert applied.splitlines() == [
        "namespace/shop created",
        "customresourcedefinition/widgets.example.org created",
        "widget/first created",
        "leaderworkerset/web created",
    ]
    deleted = cluster.lws("delete", "-n", "shop", "-f", "-", text=given)
    assert [line.split()[0] for line in deleted.splitlines()] == [
        "leaderworkerset/web",
        "widget/first",
        "namespace/shop",
        "customresourcedefinition/widgets.example.org",
    ]


def test_unserved_kind_does_not_block_other_deletions(cluster: LocalCluster) -> None:
    cluster.lws("apply", "-f", "-", text=text(of("v1", "ConfigMap", "settings")))
    given = text(of("v1", "ConfigMap", "settings"), of("example.org/v2", "Gadget", "first"), of("v1", "Secret", "none"))
    told = cluster.refused("delete", "-f", "-", text=given)
    assert "standard input:1: gadget/first: the API server does not serve kind Gadget in example.org/v2" in told
    assert "the end of secret/none" not in told
    assert "configmap/settings was already deleted" in cluster.lws(
        "delete", "-f", "-", text=text(of("v1", "ConfigMap", "settings"))
    )


def test_missing_namespace_error_suggests_the_option(cluster: LocalCluster) -> None:
    given = text(lws("web", SLEEP, replicas=0))
    told = cluster.refused("apply", "-n", "absent", "-f", "-", text=given)
    assert 'namespaces "absent" not found; add --create-namespace to this command' in told
    made = cluster.lws("apply", "-n", "absent", "--create-namespace", "-f", "-", text=given)
    assert made.startswith("namespace/absent created")


def test_unknown_fields_and_kinds_have_suggestions(cluster: LocalCluster) -> None:
    misspelt = lws("web", SLEEP)
    misspelt["spec"]["replica"] = misspelt["spec"].pop("replicas")
    misplaced = lws("web", SLEEP)
    misplaced["spec"]["size"] = 2
    told = cluster.refused(
        "apply",
        "-f",
        "-",
        text=text(misspelt, misplaced, misspelt | {"kind": "LeaderWorkerset"}, of("v1", "StatefulSet", "a")),
    )
    assert 'unknown field, did you mean "replicas"?' in told
    assert 'unknown field, did you mean "spec.leaderWorkerTemplate.size"?' in told
    assert (
        'the API server does not serve kind LeaderWorkerset in leaderworkerset.x-k8s.io/v1, did you mean "LeaderWorkerSet"?'
        in told
    )
    assert 'the API server does not serve kind StatefulSet in v1, but serves it in "apps/v1"' in told


def test_run_creates_the_namespace_of_its_manifest(shell: Shell, tmp_path: Path) -> None:
    manifest = lws("web", {"command": ["true"]})
    manifest["metadata"]["namespace"] = "training"
    path = tmp_path / "lws.json"
    path.write_text(json.dumps(manifest))
    told = shell.lws("run", "-f", str(path), "--until=done", "--timeout=60").stderr
    assert "namespace/training created (used by the manifest, but not defined in it)" in told
    assert told.splitlines()[-1] == "1 rank in 1 group exited with code 0"


def test_service_with_an_unreachable_port_causes_one_warning(cluster: LocalCluster) -> None:
    spec = {"selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": 8080}]}
    words = ["apply", f"--local={cluster.name}", "-f", "-"]
    told = cluster.shell.lws(*words, text=text(of("v1", "Service", "front", spec=spec)))
    assert told.stdout == "service/front created\n"
    warning = "service/front: spec.ports[0].targetPort: port 80 is not forwarded to 8080 in pods"
    assert told.stderr.count(f"Warning: standard input:1: {warning}") == 1
