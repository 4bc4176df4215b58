"""Tests the messages of an editor for manifests, with the schema that `lws schema` prints."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml
from testkit.repository import ROOT
from tests import builders, disaggregated

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.kinds.managedkinds import MANAGED
from lwsctl.cli import app

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
OURS = {"LeaderWorkerSet", "DisaggregatedSet", "LeaderWorkerSetOperator"}


def printed(capsys: pytest.CaptureFixture[str], *kinds: str) -> Any:
    assert app.run(["schema", *kinds]) == 0
    return msgspec.json.decode(capsys.readouterr().out)


def faults(schema: Any, obj: JSONObject) -> list[str]:
    return sorted(error.json_path for error in jsonschema.Draft7Validator(schema).iter_errors(obj))


def manifests() -> Iterator[tuple[str, JSONObject]]:
    places = [*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("docs/**/*.yaml"), *ROOT.glob("tests/e2e/manifests/*.yaml")]
    for path in sorted(places):
        for obj in yaml.safe_load_all(path.read_text()):
            if isinstance(obj, dict) and obj.get("kind") in OURS:
                yield str(path.relative_to(ROOT)), obj


@pytest.mark.slow
def test_editor_marks_only_the_manifest_with_an_unknown_field(
    capsys: pytest.CaptureFixture[str],
) -> None:
    schema = printed(capsys)
    jsonschema.Draft7Validator.check_schema(schema)
    found = list(manifests())
    assert len(found) > 10
    wrong = [(name, told) for name, obj in found if (told := faults(schema, obj))]
    assert wrong == [("tests/e2e/manifests/refused-field.yaml", ["$.spec"])]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"replica": 3}, "$.spec"),
        ({"replicas": "three"}, "$.spec.replicas"),
        ({"startupPolicy": "Never"}, "$.spec.startupPolicy"),
        ({"leaderWorkerTemplate": {"size": 2}}, "$.spec.leaderWorkerTemplate"),
    ],
)
def test_editor_marks_an_error_at_its_path(capsys: pytest.CaptureFixture[str], change: JSONObject, path: str) -> None:
    obj = builders.leaderworkerset_object()
    schema = printed(capsys)
    assert faults(schema, obj) == []
    assert faults(schema, obj | {"spec": obj["spec"] | change}) == [path]


def test_other_kind_is_valid_and_other_version_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    schema = printed(capsys)
    assert faults(schema, {"kind": "Service", "spec": {"anything": 1}}) == []
    old = disaggregated.disaggregatedset_object() | {"apiVersion": "disaggregatedset.x-k8s.io/v1alpha1"}
    assert faults(schema, old) == ["$.apiVersion"]


def test_own_fields_are_described_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = printed(capsys, "LeaderWorkerSet")["allOf"]
    spec = one["then"]["properties"]["spec"]["properties"]
    assert all(field["description"] for field in spec.values())


def test_schema_is_selected_by_kind_and_unknown_kinds_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(printed(capsys)["allOf"]) == len(MANAGED.custom_resources) + 1
    assert app.run(["schema", "Pod"]) == 2
    assert "unknown kind 'Pod'; supported kinds: LeaderWorkerSet, DisaggregatedSet" in capsys.readouterr().err
