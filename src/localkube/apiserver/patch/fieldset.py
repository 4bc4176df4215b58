"""Sets of fields, in the form the API has for them (FieldsV1), and how an object becomes one.

A set is a tree: `f:name` is a field or a map key, `k:{...}` the list item with these keys, `v:...` the item of a set
with this value. A node is a member of the set if it is empty or contains `.`; otherwise only what is below it is.
Values that are scalars or atomic are leaves. All functions return new sets and leave their arguments alone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON, JSONObject
from localkube.apiserver.model.kind import Schema

FieldSet: TypeAlias = dict[str, "FieldSet"]

MEMBER = "."
NOTHING: FieldSet = {}
INDEX = re.compile(r"-?[0-9]{1,18}", re.ASCII)


class DuplicateKeysError(ValueError):
    """A list has two items of the same key, or one without a key: its items cannot be told apart."""


class FieldSetError(ValueError):
    """What was sent is no set of fields."""


def parse(sent: JSON) -> FieldSet:
    """Read a set that a client sent; elements of types nobody knows are left out.

    >>> parse({"f:a": {".": {}, "f:b": None}, "x:c": {}})
    {'f:a': {'.': {}, 'f:b': {}}}
    """
    if sent is None:
        return {}
    if not isinstance(sent, dict):
        raise FieldSetError(f"{render(sent)} is no object")
    return {
        element: {} if element == MEMBER else parse(child) for element, child in sent.items() if _is_element(element)
    }


def _is_element(element: str) -> bool:
    if element == MEMBER:
        return True
    mark, colon, text = element.partition(":")
    if len(mark) != 1 or not colon:
        raise FieldSetError(f"{render(element)} is no path element")
    if mark in "kv":
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise FieldSetError(f"{render(element)} is no path element: {error}") from error
        if mark == "k" and not isinstance(value, dict):
            raise FieldSetError(f"{render(element)} has no keys")
    if mark == "i" and not INDEX.fullmatch(text):
        raise FieldSetError(f"{render(element)} has no index")
    return mark in "fkvi"


@dataclass(frozen=True, slots=True)
class Difference:
    """How one object became another: what is new, what has another value, what is gone."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)


def is_member(node: FieldSet) -> bool:
    """Return whether the node itself belongs to the set."""
    return not node or MEMBER in node


def children(node: FieldSet) -> FieldSet:
    """Return what is below the node."""
    return {element: child for element, child in node.items() if element != MEMBER} if MEMBER in node else node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return what is in either set.

    >>> union({"f:a": {}}, {"f:a": {"f:b": {}}})
    {'f:a': {'.': {}, 'f:b': {}}}
    """
    merged = dict(left)
    for element, node in right.items():
        other = left.get(element)
        if other is None:
            merged[element] = node
        elif other != node:
            below = union(children(other), children(node))
            merged[element] = _node(below, member=is_member(other) or is_member(node))
    return merged


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return what is in the left set and not in the right one."""
    rest: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            rest[element] = node
            continue
        member = is_member(node) and not is_member(other)
        below = difference(children(node), children(other))
        if member or below:
            rest[element] = _node(below, member=member)
    return rest


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return what is in both sets."""
    shared: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            continue
        member = is_member(node) and is_member(other)
        below = intersection(children(node), children(other))
        if member or below:
            shared[element] = _node(below, member=member)
    return shared


def _node(below: FieldSet, *, member: bool) -> FieldSet:
    return {MEMBER: {}, **below} if member and below else below


def ordered(node: FieldSet) -> FieldSet:
    """Sort as the API server writes it."""
    return {element: ordered(node[element]) if node[element] else node[element] for element in sorted(node)}


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the path of every member, in order, as messages show them.

    >>> list(paths({"f:spec": {'k:{"name":"a"}': {".": {}, "f:image": {}}}}))
    ['.spec[name="a"]', '.spec[name="a"].image']
    """
    for element, node in sorted(children(fields).items()):
        path = prefix + _format(element)
        if is_member(node):
            yield path
        yield from paths(node, path)


def _format(element: str) -> str:
    mark, _, text = element.partition(":")
    match mark:
        case "f":
            return f".{text}"
        case "k":
            pairs = msgspec.json.decode(text, type=dict[str, object])
            return "[" + ",".join(f"{name}={render(value)}" for name, value in pairs.items()) + "]"
        case "v":
            return f"[={text}]"
        case _:
            return f"[{text}]"


def child_schema(schema: Schema, name: str) -> Schema:
    """Return the schema of a field; below an open object everything is open."""
    if schema.fields is not None and name in schema.fields:
        return schema.fields[name]
    return schema.values or OPEN


OPEN = Schema("any")


def is_granular(schema: Schema, value: JSON) -> bool:
    """Return whether the value is taken apart: a free or described object, a list with keys, a set."""
    if isinstance(value, dict):
        return not schema.atomic
    return isinstance(value, list) and schema.list_type != "atomic"


def is_named(schema: Schema, name: str) -> bool:
    """Return whether the schema knows the field by name; other names are keys of a free map."""
    return schema.fields is not None and name in schema.fields


def keyed(schema: Schema, items: list[JSON]) -> dict[str, JSON]:
    """Return the items of a list with keys, or of a set, by their path elements."""
    if schema.list_type == "set":
        result = {f"v:{render(item)}": item for item in items}
    else:
        result = {_element(schema, item): item for item in items}
    if len(result) != len(items):
        raise DuplicateKeysError("two items have the same key")
    return result


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


def of_applied(schema: Schema, value: JSON) -> FieldSet:
    """Return the fields that a manager names by applying an object: leaves, map keys and list items."""
    if not value or not is_granular(schema, value):
        return {}
    result: FieldSet = {}
    if isinstance(value, dict):
        for name, child in value.items():
            described = child_schema(schema, name)
            if child == [] and is_granular(described, child) and is_named(schema, name):
                continue  # an empty list with keys names nothing
            node = of_applied(described, child)
            if child and not node and is_named(schema, name) and is_granular(described, child):
                continue  # nor does an object in which nothing is named
            result[f"f:{name}"] = node if is_named(schema, name) else _node(node, member=True)
        return result
    for element, item in keyed(schema, value).items():
        result[element] = _node(of_applied(schema.items or OPEN, item), member=True)
    return result


def of_whole(schema: Schema, value: JSON) -> FieldSet:
    """Return every field of a value, and every object and list on the way."""
    if not value or not is_granular(schema, value):
        return {}
    result: FieldSet = {MEMBER: {}}
    if isinstance(value, dict):
        for name, child in value.items():
            result[f"f:{name}"] = of_whole(child_schema(schema, name), child)
        return result
    try:
        items = keyed(schema, value)
    except DuplicateKeysError:
        return {}
    for element, item in items.items():
        result[element] = of_whole(schema.items or OPEN, item)
    return result


def compare(schema: Schema, old: JSONObject, new: JSONObject) -> Difference:
    """Return what became of the fields of `old`; an absent object and an empty one are alike."""
    result = Difference()
    _compare_objects(schema, old, new, result)
    return result


def _compare_objects(schema: Schema, old: JSONObject, new: JSONObject, found: Difference) -> None:
    for name, value in new.items():
        element = f"f:{name}"
        if name not in old:
            found.added[element] = of_whole(child_schema(schema, name), value)
        elif old[name] != value:
            _compare(element, child_schema(schema, name), (old[name], value), found)
    for name, value in old.items():
        if name not in new:
            found.removed[f"f:{name}"] = of_whole(child_schema(schema, name), value)


def _compare(element: str, schema: Schema, values: tuple[JSON, JSON], found: Difference) -> None:
    below = Difference()
    if not _compare_inside(schema, values, below):
        found.modified[element] = {}
        return
    for into, node in (
        (found.added, below.added), (found.modified, below.modified), (found.removed, below.removed),
    ):  # fmt: skip
        if node:
            into[element] = node


def _compare_inside(schema: Schema, values: tuple[JSON, JSON], below: Difference) -> bool:
    """Compare what is inside two values; False where they can only be compared as a whole."""
    if not all(value is None or is_granular(schema, value) for value in values):
        return False
    old, new = values
    if isinstance(old or {}, dict) and isinstance(new or {}, dict):
        _compare_objects(schema, old or {}, new or {}, below)
        return True
    if not (isinstance(old or [], list) and isinstance(new or [], list)):
        return False
    try:
        old_items, new_items = keyed(schema, old or []), keyed(schema, new or [])
    except DuplicateKeysError:
        return False
    items = schema.items or OPEN
    for element, value in new_items.items():
        if element not in old_items:
            below.added[element] = of_whole(items, value)
        elif old_items[element] != value:
            _compare(element, items, (old_items[element], value), below)
    for element, value in old_items.items():
        if element not in new_items:
            below.removed[element] = of_whole(items, value)
    return True
