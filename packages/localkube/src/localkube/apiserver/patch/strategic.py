"""Implements strategic merge patch, which supports directives and merges lists by key.

`$patch: replace|delete|merge` on an object or a list item, `$deleteFromPrimitiveList/<field>`,
`$setElementOrder/<field>` and `$retainKeys` are supported. In: the object, the patch, the schema of the kind. Out: a
new object. Malformed directives are rejected with 400.
"""

from collections.abc import Callable

from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.model.kind import Schema
from localkube.apiserver.patch.pathelements import OPEN, child_schema

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_VALUES = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"


def apply(target: JSONObject, patch: JSONObject, schema: Schema) -> JSONObject:
    """Merge the patch into an object, or into a nested object.

    >>> apply({"a": 1}, {"a": None, "b": {"$patch": "replace", "c": 1}}, Schema("object"))
    {'b': {'c': 1}}
    """
    match patch.get(DIRECTIVE, "merge"):
        case "replace":
            return {
                name: _without_directives(value)
                for name, value in patch.items()
                if name != DIRECTIVE and value is not None
            }
        case "delete":
            return {}
        case "merge":
            return _merge_fields(target, patch, schema)
        case other:
            raise apierrors.bad_request(f"Invalid value for $patch: {render(other)}: must be replace, merge or delete")


def _merge_fields(target: JSONObject, patch: JSONObject, schema: Schema) -> JSONObject:
    merged = _retain(target, patch)
    for name, unwanted in patch.items():
        field = name.removeprefix(DELETE_VALUES)
        if field != name:
            values = _list(name, unwanted)
            merged[field] = [item for item in merged.get(field) or [] if item not in values]
    for name, change in patch.items():
        if change is None or _is_deletion(change):
            merged.pop(name, None)
        elif not name.startswith("$"):
            merged[name] = _merge(merged.get(name), change, child_schema(schema, name))
    for name, order in patch.items():
        field = name.removeprefix(ORDER)
        ordered_values = _list(name, order) if field != name else []
        if field != name and isinstance(merged.get(field), list):
            key = child_schema(schema, field).patch_key
            merged[field] = _sort_items(merged[field], ordered_values, target.get(field) or [], key)
    return merged


def _merge(target: JSON, change: JSON, schema: Schema) -> JSON:
    if isinstance(change, dict):
        return apply(target if isinstance(target, dict) else {}, change, schema)
    if isinstance(change, list) and schema.patch_merge and isinstance(target, list | None):
        items = target or []
        return _merge_items(items, change, schema) if schema.patch_key else _merge_values(items, change)
    return _without_directives(change)


def _merge_values(target: list[JSON], change: list[JSON]) -> list[JSON]:
    added = [value for index, value in enumerate(change) if value not in target and value not in change[:index]]
    return _sort_items(target + added, change, target, "")


def _merge_items(target: list[JSON], change: list[JSON], schema: Schema) -> list[JSON]:
    key = schema.patch_key
    if any(item == {DIRECTIVE: "replace"} for item in change):
        return [_without_directives(item) for item in change if item != {DIRECTIVE: "replace"}]
    merged = list(target)
    for item in change:
        if not isinstance(item, dict):
            text = f"an item of a list with the merge key {key} must be an object"
            raise apierrors.undecodable("PATCH", render(item).encode(), text)
        if item.get(key) is None:
            raise apierrors.bad_request(f"{render(item)} does not contain declared merge key: {key}")
        position = next((index for index, old in enumerate(merged) if _key_of(old, key) == item[key]), None)
        if _is_deletion(item):
            merged = [old for old in merged if _key_of(old, key) != item[key]]
        elif position is None:
            merged.append(apply({}, item, schema.items or OPEN))
        else:
            merged[position] = apply(merged[position], item, schema.items or OPEN)
    return _sort_items(merged, change, target, key)


def _sort_items(merged: list[JSON], order: list[JSON], original: list[JSON], key: str) -> list[JSON]:
    """Sort items by `order`. Items that are not in `order` remain before the items that originally followed them."""
    key_of: Callable[[JSON], JSON] = (lambda item: _key_of(item, key)) if key else (lambda item: item)
    ordered_keys, before = [key_of(entry) for entry in order], [key_of(entry) for entry in original]

    def precedes(left: JSON, right: JSON) -> bool:
        return left in before and right in before and before.index(left) < before.index(right)

    in_order = sorted(
        (item for item in merged if key_of(item) in ordered_keys), key=lambda item: ordered_keys.index(key_of(item))
    )
    result: list[JSON] = []
    for item in (item for item in merged if key_of(item) not in ordered_keys):
        while in_order and not precedes(key_of(item), key_of(in_order[0])):
            result.append(in_order.pop(0))
        result.append(item)
    return result + in_order


def _retain(target: JSONObject, patch: JSONObject) -> JSONObject:
    if RETAIN_KEYS not in patch:
        return dict(target)
    kept = _list(RETAIN_KEYS, patch[RETAIN_KEYS])
    return {name: value for name, value in target.items() if name in kept}


def _list(name: str, value: JSON) -> list[JSON]:
    if not isinstance(value, list):
        raise apierrors.bad_request(f"{name} must be a list, not {render(value)}")
    return value


def _is_deletion(change: JSON) -> bool:
    return isinstance(change, dict) and change.get(DIRECTIVE) == "delete"


def _key_of(item: JSON, key: str) -> JSON:
    return item.get(key) if isinstance(item, dict) else None


def _without_directives(value: JSON) -> JSON:
    """Remove nulls and directives from a value that is not merged with an existing value."""
    if isinstance(value, dict):
        return {
            name: _without_directives(child)
            for name, child in value.items()
            if child is not None and not name.startswith("$")
        }
    return value
