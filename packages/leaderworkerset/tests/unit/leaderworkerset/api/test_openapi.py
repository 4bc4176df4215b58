"""Compares the field tables with the OpenAPI document of a real API server.

Only the listed differences are permitted.
"""

import json
from collections.abc import Iterator
from typing import Any

from testkit.repository import ROOT

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import schema
from leaderworkerset.api.fieldtypes import TYPES

DOCUMENT = json.loads((ROOT / "deploy/openapi/core-v1.json").read_text())["components"]["schemas"]
DEFINITIONS = {name.rsplit(".", 1)[1]: definition for name, definition in DOCUMENT.items()}

MARKED_WITH_A_CONSTANT = {("AzureDiskVolumeSource", "cachingMode"), ("AzureDiskVolumeSource", "kind")}
"""Defaults that only the document contains, because the upstream generator ignores references (R-API-7)."""

BY_MARKER = {("Condition", "reason"), ("Condition", "type"), ("Condition", "status")}
"""Patterns and enumerations in markers that the document of the API server does not include."""


def structs() -> Iterator[str]:
    """Yield each type that is used in pod templates, claims and conditions."""
    seen, waiting = {"ObjectMeta", *schema.SCALARS}, ["PodTemplateSpec", "PersistentVolumeClaim", "Condition"]
    while waiting:
        name = waiting.pop().removeprefix("[]").removeprefix("map[string]").removeprefix("[]")
        if name not in seen:
            seen.add(name)
            waiting += [field.type for field in TYPES.fields(name).values()]
            yield name


STRUCTS = sorted(structs())


def resolved(field: JSONObject) -> JSONObject:
    """Return a field with its references resolved."""
    reference = field.get("$ref") or (field["allOf"][0]["$ref"] if "allOf" in field else "")
    own = {name: value for name, value in field.items() if name != "allOf"}
    return DOCUMENT[reference.rsplit("/", 1)[1]] | own if reference else own


def pairs() -> Iterator[tuple[str, str, JSONObject, JSONObject]]:
    """Yield each field with its type and name, and its schemas in this project and in the document."""
    for struct in STRUCTS:
        ours, theirs = schema.schema_of(struct), DEFINITIONS[struct]
        for name, field in ours["properties"].items():
            yield struct, name, field, resolved(theirs["properties"][name])


def test_openapi_document_covers_many_types() -> None:
    assert len(STRUCTS) > 100


def test_types_have_the_same_fields() -> None:
    for struct in STRUCTS:
        ours, theirs = schema.schema_of(struct), DEFINITIONS[struct]
        assert ours["properties"].keys() == theirs.get("properties", {}).keys(), struct
        assert sorted(ours.get("required", [])) == sorted(theirs.get("required", [])), struct
        assert ours.get("x-kubernetes-map-type") == theirs.get("x-kubernetes-map-type"), struct


def kind_of(field: JSONObject) -> tuple[Any, ...]:
    """Return the type of a field. Int-or-string fields have two notations."""
    if field.get("x-kubernetes-int-or-string") or "oneOf" in field:
        return ("int-or-string",)
    keys = ("type", "format", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")
    return tuple(field.get(key) for key in keys)


def test_fields_have_the_same_types_and_list_keys() -> None:
    """Fields have the same types and list keys (R-API-8)."""
    different = [(struct, name) for struct, name, ours, theirs in pairs() if kind_of(ours) != kind_of(theirs)]
    assert different == []


def test_defaults_equal_the_document_except_zero_values() -> None:
    """`default: ""`, `0` and `{}` of required fields only show that the Go field is not a pointer (R-API-7)."""
    for struct, name, ours, theirs in pairs():
        required = name in schema.schema_of(struct).get("required", [])
        is_zero = "default" in theirs and theirs["default"] in ("", 0, {}) and not theirs["default"]
        if (struct, name) in MARKED_WITH_A_CONSTANT or ("default" not in ours and is_zero and required):
            continue
        if "default" not in ours and theirs.get("default") == {}:
            continue  # a struct that is always serialized
        assert ours.get("default") == theirs.get("default"), (struct, name)


def test_closed_sets_are_left_to_the_api_server() -> None:
    """The upstream CRD accepts any string. The API server rejects it when the pod is created (contract 1.2)."""
    ours = {(struct, name) for struct, name, field, _ in pairs() if "enum" in field}
    assert ours <= BY_MARKER
