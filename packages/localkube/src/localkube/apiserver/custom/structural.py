"""Implements structural schemas of CustomResourceDefinitions: pruning, defaulting and validation of objects.

A `Structural` is a node of the OpenAPI schema. It is compiled at first use, so a pod template in a CRD costs nothing
until an object contains one. `normalize` prunes and fills defaults in one pass, and returns a new value. `check`
collects errors with the messages of kube-apiserver. `x-kubernetes-validations` (CEL) are not evaluated, which the CRD's
status reports.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Final

from kuberuntime.objects.field import FieldError, Kind, required_error
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.custom import keywords
from localkube.apiserver.custom.keywords import Check, join
from localkube.apiserver.model.kind import Schema
from localkube.apiserver.patch.pathelements import DuplicateKeysError, items_by_key

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"

IDENTITY: Final = {"apiVersion", "kind", "metadata"}

TYPES: dict[str, Callable[[JSON], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    INT_OR_STRING: lambda value: isinstance(value, int | str) and not isinstance(value, bool),
}


class Structural:
    """One node of a structural schema."""

    def __init__(self, schema: JSONObject) -> None:
        self.schema = schema
        self.type = INT_OR_STRING if schema.get(INT_OR_STRING) else schema.get("type", "")
        self.preserves = bool(schema.get(PRESERVE))
        self.nullable = bool(schema.get("nullable"))
        self.always_kept = IDENTITY if schema.get(EMBEDDED) else frozenset()

    @cached_property
    def properties(self) -> dict[str, "Structural"]:
        """Return the nodes of the specified fields."""
        return {name: Structural(child) for name, child in (self.schema.get("properties") or {}).items()}

    @cached_property
    def values(self) -> "Structural | None":
        """Return the node for the values of a map with arbitrary keys."""
        additional = self.schema.get("additionalProperties")
        if additional is True:
            return Structural({PRESERVE: True})
        return Structural(additional) if isinstance(additional, dict) else None

    @cached_property
    def items(self) -> "Structural | None":
        """Return the node for list items."""
        items = self.schema.get("items")
        return Structural(items) if isinstance(items, dict) else None

    @cached_property
    def defaults(self) -> dict[str, JSON]:
        """Return the defaults for absent fields."""
        return {
            name: child.normalize(child.schema["default"])
            for name, child in self.properties.items()
            if "default" in child.schema
        }

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Return the checks for the keywords of this node."""
        return keywords.compile_checks(self.schema, Structural)

    @cached_property
    def shape(self) -> Schema:
        """Return the schema for patches and field ownership."""
        match self.type:
            case "object":
                return self._object_shape()
            case "array":
                keys = tuple(self.schema.get(LIST_KEYS) or ())
                items = self.items.shape if self.items else None
                return Schema("array", items=items, list_type=self.schema.get(LIST_TYPE, "atomic"), keys=keys)
            case "string" | "integer" | "number" | "boolean" as scalar:
                return Schema(scalar, default=self.schema.get("default"))
            case _ if self.type == INT_OR_STRING:
                return Schema("int-or-string", default=self.schema.get("default"))
            case _:
                return Schema("any")

    def _object_shape(self) -> Schema:
        values = self.values.shape if self.values else Schema("any") if self.preserves else None
        fields: dict[str, Schema] | None = {name: child.shape for name, child in self.properties.items()}
        if values is not None and not fields:
            fields = None
        return Schema("object", fields=fields, values=values, is_atomic=self.schema.get(MAP_TYPE) == "atomic")

    def normalize(self, value: JSON) -> JSON:
        """Return a new value with defaults and without unknown fields."""
        if isinstance(value, dict):
            return self._normalize_object(value)
        if isinstance(value, list):
            return value if self.items is None else [self.items.normalize(item) for item in value]
        return value

    def _normalize_object(self, value: JSONObject) -> JSONObject:
        properties, defaults = self.properties, self.defaults
        result: JSONObject = {}
        for name, child in value.items():
            child_schema = properties.get(name, self.values)
            if child_schema is not None:
                if child is None and not child_schema.nullable:
                    continue
                result[name] = child_schema.normalize(child)
            elif self.preserves or name in self.always_kept:
                result[name] = child
        for name, default in defaults.items():
            if name not in result:
                result[name] = default
        return result

    def check(self, value: JSON, path: str, errors: list[FieldError]) -> None:
        """Collect the errors of a value."""
        if value is None and self.nullable:
            return
        if self.type and not TYPES[self.type](value):
            errors.append(keywords.type_error(path, value, self.type))
            return
        for check in self.checks:
            check(value, path, errors)
        if isinstance(value, dict):
            self._check_object(value, path, errors)
        elif isinstance(value, list):
            self._check_list(value, path, errors)

    def _check_object(self, value: JSONObject, path: str, errors: list[FieldError]) -> None:
        missing = (name for name in self.schema.get("required") or () if name not in value)
        errors.extend(required_error(join(path, name)) for name in missing)
        for name, child in value.items():
            child_schema = self.properties.get(name, self.values)
            if child_schema is not None:
                child_schema.check(child, join(path, name), errors)

    def _check_list(self, value: list[JSON], path: str, errors: list[FieldError]) -> None:
        if self.items is not None:
            for index, item in enumerate(value):
                self.items.check(item, f"{path}[{index}]", errors)
        if self.schema.get(LIST_TYPE, "atomic") != "atomic":
            self._check_distinct(value, path, errors)

    def _check_distinct(self, value: list[JSON], path: str, errors: list[FieldError]) -> None:
        seen: set[str] = set()
        for index, item in enumerate(value):
            try:
                (element,) = items_by_key(self.shape, [item])
            except DuplicateKeysError:
                continue  # a missing key is reported separately, because keys are required
            if element in seen:
                keys = self.schema.get(LIST_KEYS)
                identity = {key: item[key] for key in keys if key in item} if keys else item
                errors.append(FieldError(Kind.DUPLICATE, f"{path}[{index}]", identity))
            seen.add(element)
