"""Validates a value against an OpenAPI schema in a CustomResourceDefinition. Pure.

Unknown fields are errors, as in server-side apply. Fields with a default may be absent. Combinations (`anyOf`,
`oneOf`) and CEL rules are not evaluated.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON, JSONObject
from lwsctl.cli import suggestions

INT_OR_STRING: Final = "x-kubernetes-int-or-string"

TYPES: Final[dict[str, Callable[[JSON], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
LIMITS: Final[dict[str, tuple[str, Callable[[JSON, JSON], bool]]]] = {
    "enum": ("must be one of {}", lambda value, limit: value in limit),
    "minimum": ("must be at least {}", lambda value, limit: value >= limit),
    "maximum": ("must be at most {}", lambda value, limit: value <= limit),
    "minItems": ("must have at least {} items", lambda value, limit: len(value) >= limit),
    "maxItems": ("must have at most {} items", lambda value, limit: len(value) <= limit),
    "minLength": ("must have at least {} characters", lambda value, limit: len(value) >= limit),
    "maxLength": ("must have at most {} characters", lambda value, limit: len(value) <= limit),
    "pattern": ("must match {}", lambda value, limit: re.search(limit, value) is not None),
}
OF_TEXTS: Final = ("minLength", "maxLength", "pattern")
"""Keywords that do not apply to numbers in an integer-or-string field."""


def schema_errors(schema: JSONObject, value: JSON, path: str = "") -> Iterator[str]:
    """Yield the errors in a value, each with its field path.

    >>> shape = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 1}}}
    >>> list(schema_errors(shape, {"a": 0, "b": 1}, "spec"))
    ['spec.b: unknown field', 'spec.a: Invalid value: 0: must be at least 1']
    """
    type_name = schema.get("type")
    if schema.get(INT_OR_STRING) and (not isinstance(value, int | float | str) or isinstance(value, bool)):
        yield f"{path}: Invalid value: {render(value)}: must be an integer or a string"
        return
    if type_name in TYPES and not TYPES[type_name](value):
        yield f"{path}: Invalid value: {render(value)}: must be of type {type_name}"
        return
    for keyword, (text, is_kept) in LIMITS.items():
        if (
            keyword in schema
            and (keyword not in OF_TEXTS or isinstance(value, str))
            and not is_kept(value, schema[keyword])
        ):
            yield f"{path}: Invalid value: {render(value)}: {text.format(_describe_limit(schema[keyword]))}"
    if isinstance(value, dict):
        yield from _object_errors(schema, value, path)
    elif isinstance(value, list):
        yield from _list_errors(schema, value, path)


def _object_errors(schema: JSONObject, value: JSONObject, path: str) -> Iterator[str]:
    properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
    is_open = not properties or values is not None or schema.get("x-kubernetes-preserve-unknown-fields")
    for name in value if not is_open else ():
        if name not in properties:
            yield f"{_join(path, name)}: unknown field{suggestions.hint(name, properties)}"
    for name in schema.get("required") or ():
        if name not in value and "default" not in properties.get(name, {}):
            yield f"{_join(path, name)}: Required value"
    for name, child in value.items():
        shape = properties.get(name, values)
        if isinstance(shape, dict):
            yield from schema_errors(shape, child, _join(path, name))


def _list_errors(schema: JSONObject, value: list[JSON], path: str) -> Iterator[str]:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen = set()
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if isinstance(schema.get("items"), dict):
            yield from schema_errors(schema["items"], item, place)
        if keys and isinstance(item, dict):
            own = {key: item[key] for key in keys if key in item}
            if (identity := render(own)) in seen:
                yield f"{place}: Duplicate value: {identity}"
            seen.add(identity)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _describe_limit(limit: JSON) -> str:
    return ", ".join(map(str, limit)) if isinstance(limit, list) else str(limit)
