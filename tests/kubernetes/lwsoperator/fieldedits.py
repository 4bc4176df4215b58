"""Generates edits of an object from its served schema. Each field is added, changed, and removed.

In: the live object and its OpenAPI schema. Out: for every edit some JSON patches; the first patch with an effect that the API
server accepts counts. The first member stands for all members of a list.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

Path: TypeAlias = tuple[str, ...]
Schema: TypeAlias = Mapping[str, Any]

DEPTH: Final = 4
"""The maximum depth of an added value. Deeper required fields are omitted."""

CANDIDATES: Final = 24
"""The maximum number of values for one added field."""

OPAQUE: Final = frozenset({"openAPIV3Schema"})
"""Fields with a recursive schema, which are only edited with the values in `VALUES`."""

OWNER: Final = ("apiVersion", "name", "uid")
MAP: Final = {"type": "object", "additionalProperties": {"type": "string"}}

VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "aggregationRule": [{"clusterRoleSelectors": [{"matchLabels": {"drift": "drift"}}]}],
    "allocateLoadBalancerNodePorts": [],
    "apiVersions": [["v2"]],
    "automountServiceAccountToken": [False],
    "clusterIP": ["None"],
    "effect": ["NoSchedule"],
    "env": [[{"name": "ENABLE_WEBHOOKS", "value": "false"}]],
    "envFrom": [[{"configMapRef": {"name": "drift"}}]],
    "except": [["10.1.0.0/16"]],
    "cidr": ["10.0.0.0/8"],
    "externalIPs": [["192.0.2.1"]],
    "externalName": ["drift.example.com"],
    "hostAliases": [[{"ip": "192.0.2.1", "hostnames": ["drift"]}]],
    "imagePullSecrets": [[{"name": "drift"}]],
    "image": ["example.com/drift:1"],
    "imagePullPolicy": ["Always", "Never"],
    "ip": ["192.0.2.1"],
    "loadBalancerIP": ["192.0.2.1"],
    "loadBalancerSourceRanges": [["10.0.0.0/8"]],
    "matchConditions": [[{"name": "drift", "expression": "false"}]],
    "minAvailable": [],
    "mountPath": ["/drift"],
    "namespaceSelector": [{"matchLabels": {"drift": "drift"}}],
    "openAPIV3Schema": [],
    "operations": [["DELETE"]],
    "port": [10, 444],
    "policyTypes": [["Ingress", "Egress"]],
    "replicas": [5],
    "secrets": [[{"name": "drift"}]],
    "scope": ["Cluster", "Namespaced", "*"],
    "shortNames": [["drift"]],
    "strategy": [{"type": "Recreate"}],
    "targetPort": [9444],
    "type": ["Recreate", "NodePort", "LoadBalancer", "Localhost", "Unconfined"],
    "volumeMounts": [[{"name": "tmp", "mountPath": "/drift"}]],
    "volumes": [[{"name": "drift", "emptyDir": {}}]],
}
"""Values of fields with validation beyond the type. An empty list selects the values of the type."""


@dataclass(frozen=True)
class Edit:
    """An edit, and the JSON patches that perform it."""

    what: Literal["added", "changed", "removed"]
    path: Path
    patches: Sequence[Sequence[Mapping[str, Any]]]

    def __str__(self) -> str:
        return f"{self.what} {'.'.join(self.path)}"


class Schemas:
    """The schemas in one OpenAPI v3 document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas: Mapping[str, Any] = document["components"]["schemas"]

    def of_kind(self, kind: str) -> Schema:
        """Return the object schema of a kind."""
        return next(one for name, one in self._schemas.items() if name.endswith(f".{kind}"))

    def edits(self, obj: Mapping[str, Any], schema: Schema) -> Iterator[Edit]:
        """Yield all edits of an object: its owner, its fields, and finally its labels and annotations."""
        # also the fields of a schema that preserves unknown fields
        fields = {**dict.fromkeys(obj, TEXT), **self._fields(schema)}
        for name in ("apiVersion", "kind", "metadata", "status"):
            fields.pop(name, None)
        owner = {"type": "array", "items": {"type": "object", "properties": dict.fromkeys(OWNER, TEXT)}}
        own = obj["metadata"]
        if "ownerReferences" in own:
            yield from self._in_struct(own, {"ownerReferences": owner}, ("metadata",))
        yield from self._in_struct(obj, fields, ())
        yield from self._in_struct(own, {"labels": MAP, "annotations": MAP}, ("metadata",))

    def _in_struct(self, obj: Mapping[str, Any], fields: Mapping[str, Schema], path: Path) -> Iterator[Edit]:
        for name, schema in fields.items():
            inner = (*path, name)
            if name in obj:
                yield Edit("removed", inner, [[{"op": "remove", "path": pointer(inner)}]])
                yield from self._in_value(obj[name], schema, inner)
            else:
                values = islice(self._values(name, schema, DEPTH), CANDIDATES)
                yield Edit("added", inner, [[{"op": "add", "path": pointer(inner), "value": one}] for one in values])

    def _in_value(self, value: Any, schema: Schema, path: Path) -> Iterator[Edit]:
        schema = self._resolved(schema)
        if isinstance(value, dict) and path[-1] not in OPAQUE:
            fields = self._fields(schema)
            entry = schema.get("additionalProperties") or TEXT
            yield from self._in_struct(value, fields or dict.fromkeys((*value, "drift.example.com"), entry), path)
        elif isinstance(value, list) and value:
            values = list(islice(self._values(path[-1][:-1], schema.get("items", TEXT), DEPTH), CANDIDATES))
            values += [one for whole in VALUES.get(path[-1], []) if isinstance(whole, list) for one in whole]
            yield Edit(
                "added", (*path, "-"), [[{"op": "add", "path": pointer((*path, "-")), "value": one}] for one in values]
            )
            yield Edit("removed", (*path, "0"), [[{"op": "remove", "path": pointer((*path, "0"))}]])
            yield from self._in_value(value[0], schema.get("items", TEXT), (*path, "0"))
        else:
            changed = [one for one in self._changed(value, path[-1], schema) if one != value]
            yield Edit("changed", path, [[{"op": "replace", "path": pointer(path), "value": one}] for one in changed])

    def _changed(self, value: Any, name: str, schema: Schema) -> Iterator[Any]:
        yield from VALUES.get(name, [])
        yield from schema.get("enum", [])
        match value:
            case bool():
                yield not value
            case int():
                yield from (value + 1, 1, 2)
            case str():
                yield from (f"{value}x", f"x{value}", "8", "drift", f"/{value}")
            case dict():
                yield value | {"description": "drift"}
            case list():
                yield ["drift"]

    def _values(self, name: str, schema: Schema, depth: int) -> Iterator[Any]:
        """Yield values for a schema. Simple values are yielded first."""
        yield from VALUES.get(name, [])
        schema = self._resolved(schema)
        yield from schema.get("enum", [])
        options = schema.get("oneOf") or schema.get("anyOf")
        match "mixed" if options else schema.get("type", "object"):
            case "string":
                yield from (
                    ("ZHJpZnQ=",) if schema.get("format") == "byte" else ("drift", "8", "/drift", "drift.example.com/x")
                )
            case "integer" | "number" | "mixed":
                yield from (1, 2, 1000, "1", "50%")
            case "boolean":
                yield from (True, False)
            case "array":
                yield from ([one] for one in self._values(name.removesuffix("s"), schema["items"], depth - 1))
            case _ if schema.get("additionalProperties"):
                yield from ({"drift": one} for one in self._values("", schema["additionalProperties"], depth - 1))
            case _:
                yield from self._structs(schema, depth)

    def _structs(self, schema: Schema, depth: int) -> Iterator[Any]:
        fields = self._fields(schema)
        required = schema.get("required", [])
        least = {one: next(self._values(one, fields[one], depth - 1), "drift") for one in required if depth}
        if not fields or required:
            yield least
        if depth:
            for name, inner in fields.items():
                yield from (least | {name: one} for one in islice(self._values(name, inner, depth - 1), 2))
        yield {}

    def _resolved(self, schema: Schema) -> Schema:
        found = schema.get("allOf", [schema])[0]
        return self._schemas[found["$ref"].rpartition("/")[2]] if "$ref" in found else schema

    def _fields(self, schema: Schema) -> Mapping[str, Schema]:
        found: Mapping[str, Schema] = self._resolved(schema).get("properties", {})
        return found


TEXT: Final[Schema] = {"type": "string"}


def pointer(path: Path) -> str:
    """Return a JSON pointer."""
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)
