"""Computes the field sets of objects, and the differences between two objects.

In: a schema and values, which are not modified. Out: new field sets.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model.kind import Schema
from localkube.apiserver.patch import pathelements
from localkube.apiserver.patch.fieldset import MEMBER, FieldSet, build_node
from localkube.apiserver.patch.pathelements import DuplicateKeysError, is_granular, part_schema


class Difference(Struct, frozen=True):
    """The differences between two objects: the fields that were added, changed and removed."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)


def applied_fields(schema: Schema, value: JSON) -> FieldSet:
    """Return the fields that a manager owns by applying an object: leaves, map keys and list items."""
    if not value or not is_granular(schema, value):
        return {}
    nodes = {
        element: _applied_node(schema, element, part)
        for element, part in pathelements.split_value(schema, value).items()
    }
    return {element: node for element, node in nodes.items() if node is not None}


def _applied_node(schema: Schema, element: str, part: JSON) -> FieldSet | None:
    """Return the node of a part, or None for a known field without nested fields, unless it is `{}`."""
    described = part_schema(schema, element)
    below = applied_fields(described, part)
    if not pathelements.is_named(schema, element.removeprefix("f:")):
        return build_node(below, member=True)
    if is_granular(described, part) and not below and part != {}:
        return None
    return below


def all_fields(schema: Schema, value: JSON) -> FieldSet:
    """Return all fields of a value, including the objects and lists that contain them."""
    if not value or not is_granular(schema, value):
        return {}
    try:
        parts = pathelements.split_value(schema, value)
    except DuplicateKeysError:
        return {}
    return {MEMBER: {}} | _all_fields(schema, parts)


def _all_fields(schema: Schema, parts: Mapping[str, JSON]) -> FieldSet:
    return {element: all_fields(part_schema(schema, element), part) for element, part in parts.items()}


def compare(schema: Schema, old: JSONObject, new: JSONObject) -> Difference:
    """Return the differences from `old` to `new`. An absent object and an empty object are equal."""
    return _compare_parts(schema, pathelements.split_value(schema, old), pathelements.split_value(schema, new))


def _compare_parts(schema: Schema, old: Mapping[str, JSON], new: Mapping[str, JSON]) -> Difference:
    changed = {
        element: _compare_values(part_schema(schema, element), old[element], part)
        for element, part in new.items()
        if element in old and old[element] != part
    }
    inside = {element: difference for element, difference in changed.items() if difference is not None}
    changed_fields: FieldSet = {element: {} for element, difference in changed.items() if difference is None}
    added = _all_fields(schema, {element: part for element, part in new.items() if element not in old})
    removed = _all_fields(schema, {element: part for element, part in old.items() if element not in new})
    return Difference(
        added | {element: difference.added for element, difference in inside.items() if difference.added},
        changed_fields
        | {element: difference.modified for element, difference in inside.items() if difference.modified},
        removed | {element: difference.removed for element, difference in inside.items() if difference.removed},
    )


def _compare_values(schema: Schema, old: JSON, new: JSON) -> Difference | None:
    """Return the differences between the parts of two values, or None if the values differ as a whole."""
    present = [value for value in (old, new) if value is not None]
    if not all(is_granular(schema, value) for value in present) or len({type(value) for value in present}) > 1:
        return None
    try:
        before, after = (pathelements.split_value(schema, value) if value else {} for value in (old, new))
    except DuplicateKeysError:
        return None
    return _compare_parts(schema, before, after)
