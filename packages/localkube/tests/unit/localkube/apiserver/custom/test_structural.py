"""Tests pruning, defaults and errors of structural schemas."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from testkit.customkind import definition

from kuberuntime.objects.field import FieldError
from localkube.apiserver.custom.structural import Structural

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def object_of(properties: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **keywords}


def faults_of(schema: dict[str, Any], value: Any, path: str = "spec") -> list[str]:
    errors: list[FieldError] = []
    Structural(schema).check(value, path, errors)
    return [str(error) for error in errors]


KEPT: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("unknown fields are pruned", object_of({"a": STRING}), {"a": "x", "b": 1}, {"a": "x"}),
    ("also in lists", {"type": "array", "items": object_of({"a": STRING})}, [{"b": 1}], [{}]),
    ("unless they are preserved", object_of({"a": object_of({"x": STRING})}, **{"x-kubernetes-preserve-unknown-fields": True}), {"a": {"y": 1}, "b": {"c": 1}}, {"a": {}, "b": {"c": 1}}),
    ("free maps keep all keys", {"type": "object", "additionalProperties": object_of({"a": STRING})}, {"k": {"a": "x", "b": 1}}, {"k": {"a": "x"}}),
    ("embedded objects keep their identity", object_of({"spec": STRING}, **{"x-kubernetes-embedded-resource": True}), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "z": 1}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}),
    ("defaults are filled", object_of({"a": STRING | {"default": "x"}}), {}, {"a": "x"}),
    ("also inside defaults", object_of({"a": object_of({"b": INTEGER | {"default": 1}}, default={})}), {}, {"a": {"b": 1}}),
    ("but not in absent objects", object_of({"a": object_of({"b": INTEGER | {"default": 1}})}), {}, {}),
    ("null becomes the default", object_of({"a": STRING | {"default": "x"}}), {"a": None}, {"a": "x"}),
    ("unless null is allowed", object_of({"a": STRING | {"default": "x", "nullable": True}}), {"a": None}, {"a": None}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "expected"), [case[1:] for case in KEPT], ids=[case[0] for case in KEPT])
def test_normalize_prunes_and_sets_defaults(schema: dict[str, Any], value: Any, expected: Any) -> None:
    assert Structural(schema).normalize(value) == expected


LIST = {"type": "array", "items": object_of({"name": STRING, "v": INTEGER}), "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}  # fmt: skip
ERRORS: list[tuple[dict[str, Any], Any, str]] = [
    (INTEGER, "x", 'spec: Invalid value: "string": spec in body must be of type integer: "string"'),
    (STRING, None, 'spec: Invalid value: "null": spec in body must be of type string: "null"'),
    (INTEGER, True, 'spec: Invalid value: "boolean": spec in body must be of type integer: "boolean"'),
    ({"x-kubernetes-int-or-string": True}, 1.5, 'spec: Invalid value: "number": spec in body must be of type integer,string: "number"'),
    (object_of({"a": STRING}, required=["a"]), {}, "spec.a: Required value"),
    (STRING | {"enum": ["a", "b"]}, "c", 'spec: Unsupported value: "c": supported values: "a", "b"'),
    (STRING | {"pattern": "^a+$"}, "b", "spec: Invalid value: \"b\": spec in body should match '^a+$'"),
    (INTEGER | {"minimum": 0}, -1, "spec: Invalid value: -1: spec in body should be greater than or equal to 0"),
    (INTEGER | {"minimum": 0, "exclusiveMinimum": True}, 0, "spec: Invalid value: 0: spec in body should be greater than 0"),
    (INTEGER | {"maximum": 5}, 6, "spec: Invalid value: 6: spec in body should be less than or equal to 5"),
    (INTEGER | {"multipleOf": 2}, 3, "spec: Invalid value: 3: spec in body should be a multiple of 2"),
    (INTEGER | {"format": "int32"}, 2**31, "spec: Invalid value: 2147483648: Checked value must be of type integer with format int32"),
    (STRING | {"minLength": 1}, "", 'spec: Invalid value: "": spec in body should be at least 1 chars long'),
    (STRING | {"maxLength": 1}, "ab", "spec: Too long: may not be more than 1 bytes"),
    (STRING | {"format": "date-time"}, "x", 'spec: Invalid value: "x": spec in body must be of type date-time: "x"'),
    ({"type": "array", "items": STRING, "minItems": 1}, [], "spec: Invalid value: 0: spec in body should have at least 1 items"),
    ({"type": "array", "items": STRING, "maxItems": 1}, ["a", "b"], "spec: Too many: 2: must have at most 1 items"),
    ({"type": "array", "items": INTEGER}, [1, "x"], 'spec[1]: Invalid value: "string": spec[1] in body must be of type integer: "string"'),
    ({"type": "array", "items": STRING, "x-kubernetes-list-type": "set"}, ["a", "a"], 'spec[1]: Duplicate value: "a"'),
    (LIST, [{"name": "a"}, {"name": "a", "v": 1}], 'spec[1]: Duplicate value: {"name":"a"}'),
    ({"allOf": [INTEGER | {"minimum": 3}], "x-kubernetes-preserve-unknown-fields": True}, 1, "spec: Invalid value: 1: spec in body should be greater than or equal to 3"),
    (INTEGER | {"anyOf": [{"minimum": 3}, {"maximum": 1}]}, 2, 'spec: Invalid value: 2: "spec" must validate at least one schema (anyOf)'),
    (INTEGER | {"oneOf": [{"minimum": 3}, {"minimum": 4}]}, 5, 'spec: Invalid value: 5: "spec" must validate one and only one schema (oneOf)'),
    (INTEGER | {"not": {"minimum": 3}}, 5, 'spec: Invalid value: 5: "spec" must not validate the schema (not)'),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "text"), ERRORS, ids=[text[:60] for _, _, text in ERRORS])
def test_errors_use_the_texts_of_kube_apiserver(schema: dict[str, Any], value: Any, text: str) -> None:
    assert faults_of(schema, value) == [text]


def test_valid_values_have_no_errors() -> None:
    schema = object_of({"a": INTEGER | {"minimum": 0}, "b": {"x-kubernetes-int-or-string": True}, "c": LIST})
    assert faults_of(schema, {"a": 1.0, "b": "5%", "c": [{"name": "a"}, {"name": "b"}]}) == []
    preserving = schema | {"x-kubernetes-preserve-unknown-fields": True}
    assert faults_of(preserving, {"a": 1, "unknown": {"b": 2}}) == []


@settings(max_examples=40)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=2), lambda v: st.lists(v, max_size=2) | st.dictionaries(st.sampled_from(["replicas", "leaderWorkerTemplate", "size", "x"]), v, max_size=3)))  # fmt: skip
def test_normalize_is_idempotent(value: Any) -> None:
    node = Structural(definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
    once = node.normalize(value)
    assert node.normalize(once) == once
