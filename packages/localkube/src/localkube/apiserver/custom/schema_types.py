"""Validates the JSON types of keywords in an `openAPIV3Schema`, as declared in `JSONSchemaProps` in Go.

In: the original schema of a CustomResourceDefinition. Out: the schema without nulls, or an `UndecodableError` for the
first keyword whose value Go cannot read. Other code relies on these types, for example that `properties` is a map of
schemas and `required` a list of strings.
"""

from collections.abc import Callable
from typing import Final

from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model.kind import UndecodableError

INT64: Final = 2**63

SCHEMA: Final = "v1.JSONSchemaProps"


TYPES: Final[dict[str, Callable[[JSON], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int64": lambda value: isinstance(value, int) and not isinstance(value, bool) and -INT64 <= value < INT64,
    "float64": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "[]string": lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    "[]v1.JSON": lambda value: isinstance(value, list),
    SCHEMA: lambda value: isinstance(value, dict),
    f"[]{SCHEMA}": lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
    f"map[string]{SCHEMA}": lambda value: (
        isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())
    ),
    "v1.JSONSchemaPropsOrArray": lambda _: True,
    "v1.JSONSchemaPropsOrBool": lambda value: isinstance(value, dict | bool),
    "[]v1.ValidationRule": lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
}

KEYWORDS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("id", "$schema", "$ref", "description", "type", "format", "title", "pattern", "x-kubernetes-list-type", "x-kubernetes-map-type"),
        "string",
    ),
    **dict.fromkeys(
        (
            "exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
        ),
        "bool",
    ),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), "int64"),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), "float64"),
    **dict.fromkeys(("required", "x-kubernetes-list-map-keys"), "[]string"),
    **dict.fromkeys(("allOf", "oneOf", "anyOf"), f"[]{SCHEMA}"),
    **dict.fromkeys(("properties", "patternProperties", "definitions"), f"map[string]{SCHEMA}"),
    **dict.fromkeys(("additionalProperties", "additionalItems"), "v1.JSONSchemaPropsOrBool"),
    "enum": "[]v1.JSON",
    "items": "v1.JSONSchemaPropsOrArray",
    "not": SCHEMA,
    "x-kubernetes-validations": "[]v1.ValidationRule",
}  # fmt: skip


def normalize(schema: JSON, path: str) -> JSON:
    """Return a schema without nulls, which are treated as absent. Raise an error for keywords of an invalid type."""
    if schema is None:
        return None
    if not isinstance(schema, dict):
        raise UndecodableError(_normalize_string(schema, path, SCHEMA))
    result: JSONObject = {}
    for name, value in schema.items():
        go_type = KEYWORDS.get(name)
        if go_type is None or (
            go_type == "string" and isinstance(value, str)
        ):  # two thirds of the values in a CRD are strings
            result[name] = value
        elif value is not None:
            result[name] = _normalize(value, go_type, f"{path}.{name}")
    return result


def _normalize(value: JSON, go_type: str, path: str) -> JSON:
    if isinstance(value, dict | list) and SCHEMA in go_type:
        value = _without_nulls(value, go_type)
    if not TYPES[go_type](value):
        raise UndecodableError(_normalize_string(value, path, go_type))
    if go_type.startswith("map") and isinstance(value, dict):
        return {key: normalize(child, path) for key, child in value.items()}
    if go_type.startswith("[]") and SCHEMA in go_type and isinstance(value, list):
        return [normalize(child, path) for child in value]
    return normalize(value, path) if isinstance(value, dict) and SCHEMA in go_type else value


def _without_nulls(value: JSON, go_type: str) -> JSON:
    """Replace nulls in a list or map of schemas by empty schemas, as in Go."""
    if isinstance(value, list):
        return [{} if item is None else item for item in value]
    if isinstance(value, dict) and go_type.startswith("map"):
        return {key: {} if item is None else item for key, item in value.items()}
    return value


def _normalize_string(value: JSON, path: str, go_type: str) -> str:
    names = {bool: "bool", str: "string", list: "array", dict: "object"}
    json_type = names.get(type(value), "number")
    kind = "CustomResourceDefinition"
    return (
        f'{kind} in version "v1" cannot be handled as a {kind}: json: cannot unmarshal {json_type} into Go struct field'
        f" JSONSchemaProps.{path} of type {go_type}"
    )
