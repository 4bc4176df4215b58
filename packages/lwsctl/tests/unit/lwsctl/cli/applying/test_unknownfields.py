"""Tests that the error for an unknown field suggests the intended field or the correct location."""

import pytest

from kuberuntime.objects.meta import JSONObject
from lwsctl.cli.applying.unknownfields import Schema, unknown_fields

POD = {"apiVersion": "v1", "kind": "Pod"}
DOCUMENT: JSONObject = {
    "components": {
        "schemas": {
            "Pod": {
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
                "properties": {
                    "metadata": {"properties": {"labels": {}}},
                    "spec": {"description": "The desired state.", "allOf": [{"$ref": "#/components/schemas/Spec"}]},
                },
            },
            "Spec": {
                "properties": {
                    "nodeSelector": {"additionalProperties": {"type": "string"}},
                    "containers": {"type": "array", "items": {"$ref": "#/components/schemas/Container"}},
                }
            },
            "Container": {
                "properties": {"image": {}, "command": {}, "self": {"$ref": "#/components/schemas/Container"}}
            },
        }
    }
}


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("spec.nodeselector", ', did you mean "nodeSelector"?'),
        ("spec.containers.comand", ', did you mean "command"?'),
        ("spec.selector", ', did you mean "nodeSelector"?'),
        ("spec.image", ', did you mean "spec.containers.image"?'),
        ("containers", ', did you mean "spec.containers"?'),
        ("spec.nonsense", ""),
        ("nothing.like.it", ""),
    ],
)
def test_hint_names_a_similar_field_or_its_correct_place(path: str, hint: str) -> None:
    assert Schema(DOCUMENT, POD).hint(path) == hint


def test_kind_without_a_schema_has_no_hints() -> None:
    assert Schema({}, POD).hint("spec.image") == ""
    assert Schema(DOCUMENT, {"apiVersion": "apps/v1", "kind": "Pod"}).hint("spec.image") == ""


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (
            "failed to create typed patch object (d/a; v1, Kind=Pod): .spec.imag: field not declared in schema",
            ["spec.imag"],
        ),
        ("errors:\n  .a[0].b: field not declared in schema\n  .c: field not declared in schema", ["a.b", "c"]),
        ('strict decoding error: unknown field "spec.a", unknown field "spec.b[1].c"', ["spec.a", "spec.b.c"]),
        ("spec.replicas: Invalid value: -1", []),
    ],
)
def test_unknown_fields_are_parsed_from_server_messages(message: str, found: list[str]) -> None:
    assert unknown_fields(message) == found
