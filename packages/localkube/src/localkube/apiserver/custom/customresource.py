"""Builds a kind from a CustomResourceDefinition (CRD).

Only the stored version is served. A CRD that serves several versions is rejected, because conversion is not supported.
In: a CRD with defaults. Out: a `Kind`, or the errors of the CRD.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cache

from msgspec import Struct

from kuberuntime.objects import meta, names, objectmeta
from kuberuntime.objects.field import FieldError, invalid, render
from kuberuntime.objects.meta import JSON, JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.texts import jsonpath
from localkube.apiserver.custom.structural import Structural
from localkube.apiserver.model.kind import Column, Kind, Operation, ScalePaths, Schema
from localkube.apiserver.tables import table
from localkube.apiserver.types import schemas, typed
from localkube.apiserver.types.schemas import unknown_fields

IDENTITY = ("apiVersion", "kind", "metadata")


def kind_from_crd(crd: JSONObject) -> Kind:
    """Build the kind for the stored version of a CRD."""
    resource, version, kind_names = resource_of(crd), _stored_version(crd), crd["spec"]["names"]
    subresources = version.get("subresources") or {}
    published = version["schema"]["openAPIV3Schema"]
    custom = CustomKind(
        resource=resource,
        structural=Structural(published),
        has_status="status" in subresources,
        scale=_scale_paths(subresources.get("scale")),
    )
    columns, cells = _columns(version.get("additionalPrinterColumns") or ())
    schema_of = cache(custom.schema)
    return Kind(
        resource=resource,
        singular=kind_names.get("singular") or kind_names["kind"].lower(),
        schema_of=schema_of,
        prepare=custom.prepare,
        validate=custom.validate,
        unknown_fields=lambda obj: unknown_fields(schema_of(), obj),
        columns=columns,
        cells=cells,
        short_names=tuple(kind_names.get("shortNames") or ()),
        categories=tuple(kind_names.get("categories") or ()),
        has_status=custom.has_status,
        scale=custom.scale,
        published=published,
    )


def resource_of(crd: JSONObject) -> Resource:
    """Return the resource of the stored version of a CRD."""
    spec = crd["spec"]
    kind_names, version = spec["names"], _stored_version(crd)["name"]
    return Resource(spec["group"], version, kind_names["plural"], kind_names["kind"], spec["scope"] == "Namespaced")


def _stored_version(crd: JSONObject) -> JSONObject:
    return next(version for version in crd["spec"]["versions"] if version["storage"])


def _scale_paths(scale: JSONObject | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath"))


class CustomKind(Struct, frozen=True):
    """The schema and options of a custom resource that writes require."""

    resource: Resource
    structural: Structural
    has_status: bool
    scale: ScalePaths | None

    def schema(self) -> Schema:
        """Return the schema of the whole object, including standard metadata."""
        shape = self.structural.shape
        identity = schemas.struct_schema("PartialObjectMetadata").fields or {}
        return Schema("object", fields={**(shape.fields or {}), **identity}, values=shape.values)

    def prepare(self, operation: Operation, new: JSONObject, old: JSONObject | None) -> JSONObject:
        """Return the object as the operation stores it."""
        identity = typed.normalize("PartialObjectMetadata", new)
        content = self.structural.normalize({name: value for name, value in new.items() if name not in IDENTITY})
        if operation == "status" and old is not None:
            entries = {name: value for name, value in identity["metadata"].items() if name == "managedFields"}
            metadata = {name: value for name, value in old["metadata"].items() if name != "managedFields"} | entries
            rest = {name: value for name, value in old.items() if name != "status"} | {"metadata": metadata}
            return {**rest, "status": content["status"]} if "status" in content else rest
        obj = identity | {name: value for name, value in content.items() if name not in IDENTITY}
        if self.has_status:
            obj.pop("status", None)
            if old is not None and "status" in old:
                obj["status"] = old["status"]
        generation = 1 if old is None else meta.generation(old) + (self._content(obj) != self._content(old))
        obj["metadata"] = obj["metadata"] | {"generation": generation}
        return obj

    def _content(self, obj: JSONObject) -> JSONObject:
        """Return the fields that increase the generation when they change, without metadata and status."""
        apart = {"metadata", "status"} if self.has_status else {"metadata"}
        return {name: value for name, value in obj.items() if name not in apart}

    def validate(self, _operation: Operation, new: JSONObject, _old: JSONObject | None) -> Sequence[FieldError]:
        """Return all errors of an object."""
        errors = objectmeta.validate(new["metadata"], names.dns_1123_subdomain, namespaced=self.resource.namespaced)
        self.structural.check({name: value for name, value in new.items() if name != "metadata"}, "", errors)
        return [*errors, *self._scale_errors(new)]

    def _scale_errors(self, obj: JSONObject) -> Iterator[FieldError]:
        if self.scale is None:
            return
        for path in (self.scale.spec_replicas, self.scale.status_replicas):
            for value in jsonpath.select(jsonpath.parse_path(path), obj):
                if not isinstance(value, int) or isinstance(value, bool):
                    number = int(value) if isinstance(value, float) and value.is_integer() else value
                    text = f"{path} accessor error: {_format_cell(number)} is of the type {GO_TYPES.get(type(value), '<nil>')}, expected int64"
                    yield invalid(path, 0, text)
                elif value < 0:
                    yield invalid(path, value, "should be a non-negative integer")


GO_TYPES: dict[type, str] = {
    str: "string", bool: "bool", float: "float64", dict: "map[string]interface {}", list: "[]interface {}",
}  # fmt: skip


Cells = Callable[[JSONObject, datetime], list[object]]


def _columns(declared: Sequence[JSONObject]) -> tuple[tuple[Column, ...], Cells]:
    if not declared:
        declared = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)
    columns = tuple(
        Column(
            column["name"],
            column["type"],
            column.get("description", ""),
            column.get("priority", 0),
            column.get("format", ""),
        )
        for column in declared
    )
    paths = [(jsonpath.parse_path(column["jsonPath"]), column["type"]) for column in declared]

    def cells(obj: JSONObject, now: datetime) -> list[object]:
        return [meta.name(obj), *(_cell(_values(path, obj), kind, now) for path, kind in paths)]

    return (table.NAME, *columns), cells


def _values(path: Sequence[jsonpath.Step], obj: JSONObject) -> list[JSON]:
    """Return the values of a column, or an empty list if the path does not match the object."""
    try:
        return jsonpath.select(path, obj)
    except jsonpath.JSONPathError:
        return []


def _cell(values: list[JSON], kind: str, now: datetime) -> object:
    """Return the value of a column, or None if the object does not have a value."""
    if not values or values[0] is None:
        return None
    match kind:
        case "date":
            return table.age(str(values[0]), now)
        case "integer" | "number" | "boolean" if isinstance(values[0], int | float):
            return values[0]
        case _:
            return ",".join(map(_format_cell, values))


def _format_cell(value: JSON) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else render(value)
