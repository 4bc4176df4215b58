"""Builds an OpenAPI v3 document for each group and version, and an OpenAPI v2 document without definitions.

The documents contain the parts that kubectl uses. `explain` reads the schemas. `apply` and `create` check whether PATCH
has `fieldValidation`. Custom resources have the schemas of their CRDs. Built-in kinds and types have a one-line
description, which refers to the full description of their fields.

kubectl reads OpenAPI v2 before it sends a `kind: List`. It does not check kinds that the document lacks, because the
API server validates the fields of each object.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.catalog import Registry, ServedKind
from localkube.apiserver.model.kind import Schema
from localkube.apiserver.types import schemas

ROOT: Final = "/openapi/v3"

WITHOUT_DEFINITIONS: Final[JSONObject] = {
    "swagger": "2.0",
    "info": {"title": "Kubernetes", "version": "embedded"},
    "paths": {},
    "definitions": {},
}
"""The OpenAPI v2 document."""

PROTOBUF: Final = b"\n\x032.0\x12\x16\n\nKubernetes\x12\x08embedded"
"""The same document as an `openapi.v2.Document` message, the only format that kubectl reads."""

PROTOBUF_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_ACCEPTED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

WRITE_PARAMETERS: Final = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
COLLECTION: Final = {"get": "list", "post": "post", "delete": "deletecollection"}
OBJECT: Final = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
"""The methods of an object path, and their `x-kubernetes-action`."""


def document_index(registry: Registry) -> JSONObject:
    """Return the list of documents."""
    names = sorted({_name(served) for served in registry})
    return {"paths": {name: {"serverRelativeURL": f"{ROOT}/{name}"} for name in names}}


def document(registry: Registry, name: str) -> JSONObject:
    """Return the document for `api/v1` or `apis/<group>/<version>`."""
    members = [served for served in registry if _name(served) == name]
    if not members:
        raise apierrors.unknown_resource()
    paths: JSONObject = {}
    for served in members:
        paths |= _paths(served)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": paths,
        "components": {"schemas": components(members)},
    }


def _name(served: ServedKind) -> str:
    """Return the name of the document that contains a kind."""
    resource = served.resource
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _paths(served: ServedKind) -> JSONObject:
    resource = served.resource
    collection = resource.path("{namespace}")
    return {
        collection: {method: _operation(served, action) for method, action in COLLECTION.items()},
        f"{collection}/{{name}}": {method: _operation(served, action) for method, action in OBJECT.items()},
    }


def _operation(served: ServedKind, action: str) -> JSONObject:
    resource = served.resource
    reference = {"$ref": f"#/components/schemas/{component(served)}"}
    return {
        "operationId": f"{action}{resource.kind}",
        "parameters": WRITE_PARAMETERS if action in {"post", "put", "patch"} else [],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": identity(served),
    }


ELSEWHERE: Final = "For its fields, see https://kubernetes.io/docs/reference/kubernetes-api/"

NUMBER_OR_TEXT: Final = "IntOrString"

ENVELOPE: Final = {
    "apiVersion": "The group and version of the kind.",
    "kind": "The kind of the object.",
    "metadata": "The metadata, such as name, labels and owner references.",
}
"""The descriptions of fields that all kinds share."""

PARTS: Final = ENVELOPE | {"spec": "The desired state.", "status": "The observed state."}
"""The descriptions of the fields of built-in kinds and their templates."""

IDENTITY: Final[JSONObject] = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}


def components(members: Iterable[ServedKind]) -> JSONObject:
    """Return the schemas of kinds and of all their types."""
    kinds = list(members)
    types: dict[str, Schema] = {}
    _collect(Schema("object", fields={"metadata": _metadata()}), types)
    for served in kinds:
        if served.kind.published is None:
            _collect(served.kind.schema, types)
    return {
        **{
            _type_name(name): _object_schema(shape, f"{name} of the Kubernetes API. {ELSEWHERE}")
            for name, shape in types.items()
        },
        _type_name(NUMBER_OR_TEXT): {
            "description": "A number or a string.",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        },
        **{component(served): _kind_schema(served) for served in kinds},
    }


def component(served: ServedKind) -> str:
    """Return the name of a kind's schema.

    The parts of the group are in reverse order, as in the documents of kube-apiserver: `io.k8s.events.v1.Event`.
    """
    resource = served.resource
    words = resource.group.split(".") if "." in resource.group else [resource.group or "core", "api", "k8s", "io"]
    return ".".join([*reversed(words), resource.version, resource.kind])


def identity(served: ServedKind) -> JSONObject:
    """Return the group, version and kind of a kind, for documents."""
    resource = served.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _kind_schema(served: ServedKind) -> JSONObject:
    """Return the published OpenAPI schema of a kind, or build it from its `Schema`."""
    kind = served.kind
    own = kind.published or _object_schema(kind.schema, f"{kind.description} {ELSEWHERE}")
    properties = IDENTITY | own.get("properties", {}) | {"metadata": schema(_metadata())}
    described = _with_descriptions(properties, ENVELOPE)
    return own | {"properties": described, "x-kubernetes-group-version-kind": [identity(served)]}


def _with_descriptions(properties: JSONObject, texts: Mapping[str, str]) -> JSONObject:
    """Add missing descriptions to fields. Wrap references, because they cannot have other members."""
    bare = {name: field for name, field in properties.items() if name in texts and "description" not in field}
    worded = {
        name: {"description": texts[name], **({"allOf": [field]} if "$ref" in field else field)}
        for name, field in bare.items()
    }
    return properties | worded


def _metadata() -> Schema:
    return schemas.struct_schema("ObjectMeta")


def _object_schema(shape: Schema, description: str) -> JSONObject:
    fields = {name: schema(field) for name, field in (shape.fields or {}).items()}
    properties = _with_descriptions(fields, PARTS) if "metadata" in fields else fields
    return {"type": "object", "description": description, "properties": properties}


def _collect(shape: Schema, types: dict[str, Schema]) -> None:
    """Collect the named types inside a schema."""
    for inner in (*(shape.fields or {}).values(), shape.items, shape.values):
        if inner is None or inner.name in types:
            continue
        if inner.name:
            types[inner.name] = inner
        _collect(inner, types)


def _type_name(name: str) -> str:
    return f"io.k8s.{name}"


def _reference(name: str) -> JSONObject:
    return {"$ref": f"#/components/schemas/{_type_name(name)}"}


def schema(shape: Schema) -> JSONObject:
    """Convert a schema to OpenAPI. Named types become references.

    >>> schema(Schema("array", items=Schema("string"), list_type="set"))
    {'type': 'array', 'items': {'type': 'string'}, 'x-kubernetes-list-type': 'set'}
    >>> schema(Schema("object", fields={}, name="Container"))
    {'$ref': '#/components/schemas/io.k8s.Container'}
    """
    if shape.name:
        return _reference(shape.name)
    match shape.type:
        case "any":
            return {"x-kubernetes-preserve-unknown-fields": True}
        case "int-or-string":
            return _reference(NUMBER_OR_TEXT)
        case "array":
            keys = {"x-kubernetes-list-map-keys": list(shape.keys)} if shape.keys else {}
            items = schema(shape.items) if shape.items else {}
            return {"type": "array", "items": items, "x-kubernetes-list-type": shape.list_type, **keys}
        case "object" if shape.values is not None:
            return {"type": "object", "additionalProperties": schema(shape.values)}
        case plain:
            return {"type": plain}
