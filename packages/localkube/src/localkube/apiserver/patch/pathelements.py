"""Splits values into fields, map keys and list items with path elements, according to the schema.

Scalars and atomic values are not split. They are leaves of field sets and are replaced as a whole.
"""

from typing import Final

from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON
from localkube.apiserver.model.kind import Schema
from localkube.apiserver.patch.fieldset import format_element

OPEN: Final = Schema("any")


class DuplicateKeysError(ValueError):
    """List items cannot be identified, because two items have the same key or an item has no key."""


def is_granular(schema: Schema, value: JSON) -> bool:
    """Return whether the value can be split. This applies to granular objects and maps, lists with keys, and sets."""
    if isinstance(value, dict):
        return not schema.is_atomic
    return isinstance(value, list) and schema.list_type != "atomic"


def is_named(schema: Schema, name: str) -> bool:
    """Return whether the schema contains the field. Other names are keys of a map with arbitrary keys."""
    return schema.fields is not None and name in schema.fields


def child_schema(schema: Schema, name: str) -> Schema:
    """Return the schema of a field, or `OPEN` if the schema does not contain it."""
    if schema.fields is not None and name in schema.fields:
        return schema.fields[name]
    return schema.values or OPEN


def split_value(schema: Schema, value: JSON) -> dict[str, JSON]:
    """Return the parts of a granular value by path element. Can raise `DuplicateKeysError`."""
    if isinstance(value, dict):
        return {f"f:{name}": child for name, child in value.items()}
    return items_by_key(schema, value)


def part_schema(schema: Schema, element: str) -> Schema:
    """Return the schema of the part with this path element."""
    mark, _, name = element.partition(":")
    return child_schema(schema, name) if mark == "f" else schema.items or OPEN


def items_by_key(schema: Schema, items: list[JSON]) -> dict[str, JSON]:
    """Return the items of a list with keys, or of a set, by path element."""
    result: dict[str, JSON] = {}
    for item in items:
        element = f"v:{render(item)}" if schema.list_type == "set" else _element(schema, item)
        if element in result:
            raise DuplicateKeysError(f"duplicate entries for key {format_element(element)}")
        result[element] = item
    return result


def find_duplicate(schema: Schema, value: JSON, path: str = "") -> str:
    """Return the path of the first list whose items cannot be identified, or an empty string."""
    if not is_granular(schema, value):
        return ""
    try:
        children = split_value(schema, value)
    except DuplicateKeysError:
        return path
    for element, child in children.items():
        name = f".{element[2:]}" if isinstance(value, dict) else format_element(element)
        if place := find_duplicate(part_schema(schema, element), child, f"{path}{name}"):
            return place
    return ""


def _element(schema: Schema, item: JSON) -> str:
    if not isinstance(item, dict):
        raise DuplicateKeysError(f"{render(item)} has no keys")
    fields = schema.items.fields if schema.items is not None and schema.items.fields is not None else {}
    pairs: dict[str, JSON] = {}
    for key in sorted(schema.keys):
        value = item.get(key, fields[key].default if key in fields else None)
        if value is None:
            raise DuplicateKeysError(f'associative list with keys has an element that omits key field "{key}"')
        pairs[key] = value
    return f"k:{render(pairs)}"
