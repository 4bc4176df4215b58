"""Tests that `lws doctor -f` rejects the same objects as an API server, and lists unchecked objects."""

from pathlib import Path

import pytest
from tests import builders
from tests.disaggregated import disaggregatedset_object, role

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.doctor.findings import Level
from lwsctl.cli.doctor.manifestvalidation import validate_manifests
from lwsctl.cli.reading import manifests
from lwsctl.cli.reading.manifests import Document

SET = builders.leaderworkerset_object(image="app:1", replicas=2, size=2)


def documents(*objects: JSONObject) -> list[Document]:
    return [Document("web.yaml", 1, obj) for obj in objects]


def problems(*objects: JSONObject) -> list[str]:
    return [one.text for one in validate_manifests(documents(*objects)) if one.level is Level.ERROR]


def with_container(**fields: object) -> JSONObject:
    container = {"name": "main", "image": "app:1"} | fields
    return builders.leaderworkerset_object(template={"workerTemplate": {"spec": {"containers": [container]}}})


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (with_container(imag="x"), 'containers[0].imag: unknown field, did you mean "image"?'),
        (with_container(command="sleep"), 'containers[0].command: Invalid value: "sleep": must be of type array'),
        (with_container(env=[{"name": "A"}, {"name": "A"}]), 'containers[0].env[1]: Duplicate value: {"name":"A"}'),
        (builders.leaderworkerset_object(replicas=-1), "spec.replicas: Invalid value: -1"),
        (SET | {"spec": SET["spec"] | {"startupPolicy": "Never"}}, "spec.startupPolicy: Invalid value"),
        (SET | {"spec": {}}, "spec.leaderWorkerTemplate: Required value"),
        (SET | {"apiVersion": "leaderworkerset.x-k8s.io/v7"}, "apiVersion: Unsupported value: 'v7': served: v1"),
        (disaggregatedset_object([role("a"), role("a")]), "spec.roles[1]"),
        (disaggregatedset_object([role("a", 0), role("b", 1)]), "spec.roles"),
    ],
)  # fmt: skip
def test_invalid_field_is_an_error_with_its_path(obj: JSONObject, text: str) -> None:
    found = problems(obj)
    assert len(found) == 1
    assert text in found[0]


def test_valid_objects_are_accepted() -> None:
    assert [one.level for one in validate_manifests(documents(SET, disaggregatedset_object()))] == [Level.OK]


def test_objects_of_other_kinds_are_reported_as_unchecked() -> None:
    (result,) = validate_manifests(documents({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}))
    assert (result.code, result.level) == ("LWS-D013", Level.NOTE)
    assert "Service web" in result.text


def test_examples_are_valid() -> None:
    examples = [one for path in sorted(Path("examples").rglob("*.yaml")) for one in manifests.load([str(path)])]
    assert [one.text for one in validate_manifests(examples) if one.level is Level.ERROR] == []
