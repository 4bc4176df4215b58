"""Suggests a similar field or the correct path for a field that the API server does not recognize.

The input is the server's message, and the schema of the kind in its OpenAPI document. The output is a hint for each
field.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.errors import KubeError
from kuberuntime.objects.meta import JSON, JSONObject
from lwsctl.cli import suggestions

UNDECLARED: Final = re.compile(r"\.(\S+): field not declared in schema")
STRICT: Final = re.compile(r'unknown field "([^"]+)"')
ELEMENT: Final = re.compile(r"\[[^\]]*\]")
"""A list element in a path: its index or its keys."""

ADVICE: Final = "unknown field; check its name and location"

DEEPEST: Final = 4
"""The maximum depth of the search for a misplaced field."""


async def advice(client: Client, obj: JSONObject, message: str) -> str:
    """Return suggestions for the error message of an object, or an empty string if all fields are known."""
    unknown = unknown_fields(message)
    if not unknown:
        return ""
    schema = Schema(await _openapi_document(client, obj["apiVersion"]), obj)
    hints = [schema.hint(path) for path in unknown]
    if not any(hints):
        return f": {ADVICE}"
    if len(unknown) == 1:
        return f": unknown field{hints[0]}"
    lines = [f'unknown field "{path}"{hint}' for path, hint in zip(unknown, hints, strict=True)]
    return "".join(f"\n  {line}" for line in lines)


def unknown_fields(message: str) -> list[str]:
    """Return the paths of the unknown fields in a message.

    >>> unknown_fields('.spec.template.spec.containers[name="a"].imag: field not declared in schema')
    ['spec.template.spec.containers.imag']
    """
    matches = [*UNDECLARED.findall(message), *STRICT.findall(message)]
    return list(dict.fromkeys(ELEMENT.sub("", path) for path in matches))


class Schema:
    """The schema of one kind in an OpenAPI v3 document. An empty document has no fields."""

    def __init__(self, document: JSONObject, obj: JSONObject) -> None:
        self._types: JSONObject = (document.get("components") or {}).get("schemas") or {}
        group, _, version = obj["apiVersion"].rpartition("/")
        identity = {"group": group, "version": version, "kind": obj["kind"]}
        types = (
            definition
            for definition in self._types.values()
            if identity in definition.get("x-kubernetes-group-version-kind", ())
        )
        self._root: JSON = next(types, {})

    def hint(self, path: str) -> str:
        """Return the suggestion for an unknown field, or an empty string if no field is similar."""
        *parents, name = path.split(".")
        node = self._root
        for parent in parents:
            node = self._fields(node).get(parent, {})
        fields = self._fields(node)
        near = suggestions.hint(name, fields)
        if near:
            return near
        if longer := [field for field in fields if field.endswith(name[:1].upper() + name[1:])]:
            return f', did you mean "{longer[0]}"?'  # such as `type` in subGroupPolicy
        elsewhere = next(iter(sorted(self._find_paths(name, self._root, ""), key=lambda place: place.count("."))), "")
        return f', did you mean "{elsewhere}"?' if elsewhere else ""

    def _fields(self, node: JSON) -> JSONObject:
        """Return the fields of a schema.

        References and lists are resolved, and all keys in a map have the same schema.
        """
        node = self._resolve_reference(node)
        if "items" in node:
            node = self._resolve_reference(node["items"])
        properties: JSONObject = node.get("properties") or {}
        return properties

    def _resolve_reference(self, node: JSON) -> JSONObject:
        for _ in range(DEEPEST):
            if isinstance(node, dict) and "$ref" in node:
                node = self._types.get(str(node["$ref"]).rpartition("/")[2], {})
            elif isinstance(node, dict) and len(node.get("allOf") or ()) == 1:
                node = node["allOf"][0]
        return node if isinstance(node, dict) else {}

    def _find_paths(self, name: str, node: JSON, path: str, depth: int = DEEPEST) -> Iterator[str]:
        for field, child in self._fields(node).items():
            place = f"{path}.{field}" if path else field
            if path and field == name:
                yield place
            if depth > 1 and field not in {"metadata", "status"}:
                yield from self._find_paths(name, child, place, depth - 1)


async def _openapi_document(client: Client, api_version: str) -> JSONObject:
    """Return the schemas in a group version, or an empty document if the server does not publish them."""
    path = f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"
    try:
        response = await client.send(Request("GET", f"/openapi/v3/{path}"))
        return msgspec.json.decode(response.body, type=dict)
    except (KubeError, msgspec.MsgspecError):  # the message is printed without a hint
        return {}
