"""OpenAPI v3 documents, one per group and version, made from the schemas of the kinds.

Enough for kubectl: `explain` reads the schemas; `apply` and `create` look whether PATCH takes `fieldValidation`.
"""

from typing import Final

from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.apiserver import refusal
from leaderworkerset.embedded.apiserver.kind import Schema
from leaderworkerset.embedded.apiserver.registry import Registry, Served

ROOT: Final = "/openapi/v3"

WRITE_PARAMETERS: Final = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
COLLECTION: Final = {"get": "list", "post": "post", "delete": "deletecollection"}
OBJECT: Final = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
"""The methods of a path, and the actions that `x-kubernetes-action` calls them."""

METADATA: Final[JSONObject] = {
    "type": "object",
    "description": "Standard object metadata.",
    "properties": {
        **{name: {"type": "string"} for name in ("name", "generateName", "namespace", "uid", "resourceVersion")},
        **{name: {"type": "string", "format": "date-time"} for name in ("creationTimestamp", "deletionTimestamp")},
        **{name: {"type": "integer", "format": "int64"} for name in ("generation", "deletionGracePeriodSeconds")},
        **{name: {"type": "object", "additionalProperties": {"type": "string"}} for name in ("labels", "annotations")},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        **{name: {"type": "array", "items": {"type": "object"}} for name in ("ownerReferences", "managedFields")},
    },
}


def index(registry: Registry) -> JSONObject:
    """Return the list of documents."""
    names = sorted({_name(served) for served in registry})
    return {"paths": {name: {"serverRelativeURL": f"{ROOT}/{name}"} for name in names}}


def document(registry: Registry, name: str) -> JSONObject:
    """Return the document of `api/v1` or `apis/<group>/<version>`."""
    members = [served for served in registry if _name(served) == name]
    if not members:
        raise refusal.unknown_resource()
    paths: JSONObject = {}
    for served in members:
        paths |= _paths(served)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "embedded"},
        "paths": paths,
        "components": {"schemas": {component(served): _component(served) for served in members}},
    }


def _name(served: Served) -> str:
    """Return the name of the document a kind is in."""
    resource = served.resource
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def component(served: Served) -> str:
    """Return the name of a kind's schema.

    The group's words stand in reverse order, as in the documents of kube-apiserver: `io.k8s.events.v1.Event`.
    """
    resource = served.resource
    words = resource.group.split(".") if "." in resource.group else [resource.group or "core", "api", "k8s", "io"]
    return ".".join([*reversed(words), resource.version, resource.kind])


def _paths(served: Served) -> JSONObject:
    resource = served.resource
    collection = resource.path("{namespace}")
    return {
        collection: {method: _operation(served, action) for method, action in COLLECTION.items()},
        f"{collection}/{{name}}": {method: _operation(served, action) for method, action in OBJECT.items()},
    }


def _operation(served: Served, action: str) -> JSONObject:
    resource = served.resource
    reference = {"$ref": f"#/components/schemas/{component(served)}"}
    return {
        "operationId": f"{action}{resource.kind}",
        "parameters": WRITE_PARAMETERS if action in {"post", "put", "patch"} else [],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _identity(served),
    }


def _component(served: Served) -> JSONObject:
    described = schema(served.kind.schema)
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **described.get("properties", {})}
    return {
        **described,
        "properties": properties | {"metadata": METADATA},
        "x-kubernetes-group-version-kind": [_identity(served)],
    }


def _identity(served: Served) -> JSONObject:
    resource = served.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def schema(shape: Schema) -> JSONObject:
    """Return the OpenAPI schema of a shape.

    >>> schema(Schema("array", items=Schema("string"), list_type="set"))
    {'type': 'array', 'items': {'type': 'string'}, 'x-kubernetes-list-type': 'set'}
    """
    match shape.type:
        case "any":
            return {"x-kubernetes-preserve-unknown-fields": True}
        case "int-or-string":
            return {"x-kubernetes-int-or-string": True}
        case "array":
            keys = {"x-kubernetes-list-map-keys": list(shape.keys)} if shape.keys else {}
            items = schema(shape.items) if shape.items else {}
            return {"type": "array", "items": items, "x-kubernetes-list-type": shape.list_type, **keys}
        case "object" if shape.fields is not None:
            return {"type": "object", "properties": {name: schema(one) for name, one in shape.fields.items()}}
        case "object" if shape.values is not None:
            return {"type": "object", "additionalProperties": schema(shape.values)}
        case plain:
            return {"type": plain}
