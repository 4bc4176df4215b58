"""Implements field sets in the API format (FieldsV1), with union, difference and intersection.

A field set is a tree: `f:name` is a field or a map key, `k:{...}` is the list item with these keys, and `v:...` is the
set item with this value. A node is a member of the set if it is empty or contains `.`. Otherwise only its children are
members. Functions do not modify their arguments, but results may share nodes with them.
"""

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec

from kuberuntime.manifests import nesting
from kuberuntime.manifests.nesting import MAX_DEPTH
from kuberuntime.objects.field import render
from kuberuntime.objects.meta import JSON

FieldSet: TypeAlias = dict[str, "FieldSet"]

MEMBER: Final = "."

LEVELS: Final = MAX_DEPTH - 5
"""The maximum depth of a field set in an object. The path to `metadata.managedFields[0].fieldsV1` has five levels."""


def build_node(below: FieldSet, *, member: bool) -> FieldSet:
    """Build a node from its children."""
    return {MEMBER: {}, **below} if member and below else below


def is_member(node: FieldSet) -> bool:
    """Return whether the node itself belongs to the set."""
    return not node or MEMBER in node


def children(node: FieldSet) -> FieldSet:
    """Return the children of the node."""
    return {element: child for element, child in node.items() if element != MEMBER} if MEMBER in node else node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the union of two sets.

    >>> union({"f:a": {}}, {"f:a": {"f:b": {}}})
    {'f:a': {'.': {}, 'f:b': {}}}
    """
    shared = {element: _union_of_nodes(left[element], right[element]) for element in left.keys() & right.keys()}
    return left | right | shared


def _union_of_nodes(left: FieldSet, right: FieldSet) -> FieldSet:
    if left == right:
        return left
    below = union(children(left), children(right))
    return build_node(below, member=is_member(left) or is_member(right))


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members of the left set that are not in the right set."""
    rest: FieldSet = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            rest[element] = node
            continue
        member = is_member(node) and not is_member(other)
        below = difference(children(node), children(other))
        if member or below:
            rest[element] = build_node(below, member=member)
    return rest


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the members that are in both sets."""
    shared: FieldSet = {}
    for element in left.keys() & right.keys():
        member = is_member(left[element]) and is_member(right[element])
        below = intersection(children(left[element]), children(right[element]))
        if member or below:
            shared[element] = build_node(below, member=member)
    return shared


def to_json(node: FieldSet, levels: int = LEVELS) -> FieldSet:
    """Return the set in the form for objects, sorted and truncated at `levels`.

    Nodes at the cut are owned as a whole. So `managedFields` never exceed the allowed depth, and clients can send the
    object back.
    """
    return {element: to_json(node[element], levels - 1) if levels > 1 else {} for element in sorted(node)}


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the path of every member, in order, for messages.

    >>> list(paths({"f:spec": {'k:{"name":"a"}': {".": {}, "f:image": {}}}}))
    ['.spec[name="a"]', '.spec[name="a"].image']
    """
    for element, node in sorted(children(fields).items()):
        path = prefix + (f".{element[2:]}" if element.startswith("f:") else format_element(element))
        if is_member(node):
            yield path
        yield from paths(node, path)


def format_element(element: str) -> str:
    """Format the path element of a list item as in API server messages.

    >>> format_element('k:{"name":"main"}'), format_element('v:"a"'), format_element("i:0")
    ('[name="main"]', '[="a"]', '[0]')
    """
    mark, _, text = element.partition(":")
    if mark != "k":
        return f"[={text}]" if mark == "v" else f"[{text}]"
    return f"[{','.join(f'{key}={render(value)}' for key, value in msgspec.json.decode(text).items())}]"


INDEX: Final = re.compile(r"-?[0-9]{1,18}", re.ASCII)

KNOWN: Final = "fkvi"
"""The types of path elements: fields, keys, values and indexes."""


class FieldSetError(ValueError):
    """The value is not a field set."""


def parse(sent: JSON) -> FieldSet:
    """Parse a field set from a client (a decoded value with limited depth). Elements of unknown types are ignored.

    >>> parse({"f:a": {".": {}, "f:b": None}, "x:c": {}})
    {'f:a': {'.': {}, 'f:b': {}}}
    """
    if sent is None:
        return {}
    if not isinstance(sent, dict):
        raise FieldSetError(f"{render(sent)} is not an object")
    return {element: {} if element == MEMBER else parse(child) for element, child in sent.items() if _is_known(element)}


def _is_known(element: str) -> bool:
    """Return whether the type of the element is known. Raise an error if the element is malformed."""
    if element == MEMBER:
        return True
    mark, colon, text = element.partition(":")
    if len(mark) != 1 or not colon:
        raise FieldSetError(f"{render(element)} is not a path element")
    match mark:
        case "k" if not isinstance(_decode(element, text), dict):
            raise FieldSetError(f"{render(element)} has no keys")
        case "v":
            _decode(element, text)
        case "i" if not INDEX.fullmatch(text):
            raise FieldSetError(f"{render(element)} has no index")
    return mark in KNOWN


def _decode(element: str, text: str) -> JSON:
    try:
        return nesting.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise FieldSetError(f"{render(element)} is not a path element: {error}") from error
