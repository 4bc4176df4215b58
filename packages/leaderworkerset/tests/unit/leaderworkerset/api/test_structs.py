"""Tests that structs, Go types and CRDs have the same fields and enumerations.

The definition of LeaderWorkerSets is built from the table, so that what one of the three lacks shows against the other.
"""

from collections.abc import Iterator
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import pytest

from leaderworkerset.api.crd import leaderworkerset_crd
from leaderworkerset.api.disaggregatedset import (
    DisaggregatedSet,
    RoleMetadata,
    RoleRollingUpdate,
    RoleRolloutStrategy,
    RoleSpec,
)
from leaderworkerset.api.disaggregatedset_crd import disaggregatedset_crd
from leaderworkerset.api.leaderworkerset import Condition, LeaderWorkerSet, ObjectMeta, RolloutStrategy

PARTIAL = {DisaggregatedSet, RoleMetadata, RoleSpec, RoleRolloutStrategy, RoleRollingUpdate}
"""The structs that contain only some of the fields."""

OPEN = {(RolloutStrategy, "type"), (RoleRolloutStrategy, "type"), (Condition, "status")}
"""Enumerations that remain strings. Clients omit the strategy type (R-KQ-10). Kubernetes defines conditions."""

SCALARS = {"integer": int, "string": str, "boolean": bool, "object": dict}


def differences(struct: type[msgspec.Struct], shape: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the differences between the struct and the schema, with the file in which the field is missing."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}
    properties: dict[str, Any] = shape["properties"]
    if struct not in PARTIAL:
        yield from (f"{path}{name}: no field of struct {struct.__name__}" for name in properties if name not in fields)
    for name, type_ in fields.items():
        if name not in properties:
            yield f"{path}{name}: in struct {struct.__name__}, not in gotypes.json or the definition"
        elif (struct, name) not in OPEN and type_ is not ObjectMeta:  # Kubernetes defines ObjectMeta
            yield from _of_field(type_, properties[name], path + name)


def _of_field(type_: Any, shape: dict[str, Any], path: str) -> Iterator[str]:
    parts = [part for part in get_args(type_) if part is not NoneType]
    if shape.get("x-kubernetes-int-or-string"):
        yield from () if {int, str} <= {*parts} else (f"{path}: {type_} in the struct, a number or text elsewhere",)
    elif get_origin(type_) in (Annotated, Union, UnionType):
        yield from _of_field(parts[0], shape, path)
    elif shape["type"] == "array" and get_origin(type_) is tuple:
        yield from _of_field(parts[0], shape["items"], f"{path}[]")
    elif isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        yield from differences(type_, shape, f"{path}.")
    elif isinstance(type_, type) and issubclass(type_, StrEnum):
        if sorted(shape.get("enum", ())) != sorted(type_):
            yield f"{path}: {type_.__name__} has {sorted(type_)}, the definition {shape.get('enum')}"
    elif "enum" in shape:
        yield f"{path}: a closed set, so the struct needs an enum"
    elif (get_origin(type_) or type_) is not SCALARS[shape["type"]]:
        yield f"{path}: {type_} in the struct, {shape['type']} elsewhere"


def schema_of(definition: dict[str, Any]) -> dict[str, Any]:
    (version,) = definition["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


@pytest.mark.parametrize(
    ("struct", "definition"),
    [(LeaderWorkerSet, leaderworkerset_crd()), (DisaggregatedSet, disaggregatedset_crd())],
    ids=["LeaderWorkerSet", "DisaggregatedSet"],
)
def test_structs_and_definitions_have_the_same_fields(struct: type[msgspec.Struct], definition: dict[str, Any]) -> None:
    """`docs/how-to/extend.md` lists the files to change for a new field."""
    assert list(differences(struct, schema_of(definition))) == []


class _Inner(msgspec.Struct):
    mode: str = ""
    count: str = ""
    extra: str = ""


class _Outer(msgspec.Struct):
    items: tuple[_Inner, ...] = ()


def test_nested_difference_is_found() -> None:
    inner = {
        "mode": {"type": "string", "enum": ["A"]},
        "count": {"type": "integer"},
        "forgotten": {"type": "string"},
    }
    items = {"type": "array", "items": {"type": "object", "properties": inner}}
    assert list(differences(_Outer, {"properties": {"items": items}})) == [
        "items[].forgotten: no field of struct _Inner",
        "items[].mode: a closed set, so the struct needs an enum",
        "items[].count: <class 'str'> in the struct, integer elsewhere",
        "items[].extra: in struct _Inner, not in gotypes.json or the definition",
    ]
