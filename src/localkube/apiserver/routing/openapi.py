"""OpenAPI v3 documents, one per group and version.

As much as kubectl uses: `explain` reads the schemas; `apply` and `create` check whether PATCH has `fieldValidation`.
"""

from typing import Final

from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import refusal
from localkube.apiserver.model.catalog import Registry, Served
from localkube.apiserver.routing import openapi_schemas
from localkube.apiserver.routing.openapi_schemas import component, identity

ROOT: Final = "/openapi/v3"

WRITE_PARAMETERS: Final = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
COLLECTION: Final = {"get": "list", "post": "post", "delete": "deletecollection"}
OBJECT: Final = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
"""The methods of a path, and their `x-kubernetes-action`."""


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
        "components": {"schemas": openapi_schemas.components(members)},
    }


def _name(served: Served) -> str:
    """Return the name of the document that has a kind."""
    resource = served.resource
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


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
        "x-kubernetes-group-version-kind": identity(served),
    }
