"""Finds the fields of an object that its schema does not have, for strict field validation."""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model.kind import Schema

CONTAINERS: Final = (dict, list)


def unknown_fields(schema: Schema, obj: JSONObject) -> list[str]:
    """Return the paths of fields that reading the object drops.

    >>> unknown_fields(Schema("object", fields={"a": Schema("string")}), {"a": "x", "b": 1})
    ['b']
    """
    return [] if _knows(schema, obj) else list(_walk(schema, obj, ""))


def _knows(schema: Schema, value: JSON) -> bool:
    """Return whether the schema has all fields. Nearly always it does, so paths are built only if it does not."""
    if isinstance(value, dict):
        fields, others = schema.fields, schema.values
        for name, child in value.items():
            known = others if fields is None else fields.get(name, others)
            if known is None:
                if fields is not None:
                    return False
            elif isinstance(child, CONTAINERS) and not _knows(known, child):
                return False
    elif isinstance(value, list) and schema.items is not None:
        items = schema.items
        return all(_knows(items, child) for child in value if isinstance(child, CONTAINERS))
    return True


def _walk(schema: Schema, value: JSON, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, child in value.items():
            child_path = f"{path}.{name}" if path else name
            known = (schema.fields or {}).get(name, schema.values)
            if known is not None:
                yield from _walk(known, child, child_path)
            elif schema.fields is not None:
                yield child_path
    elif isinstance(value, list) and schema.items is not None:
        for index, child in enumerate(value):
            yield from _walk(schema.items, child, f"{path}[{index}]")
