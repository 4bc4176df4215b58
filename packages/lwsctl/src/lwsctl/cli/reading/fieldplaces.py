"""Finds the fields of an object that a message names, and their lines in the manifest. Pure.

In: a message of an API server, of admission or of a check, the object, and the lines of its fields. Out: the message, and
the line of its first field.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from kuberuntime.manifests.fieldlines import Path
from kuberuntime.manifests.nesting import MAX_DEPTH
from kuberuntime.objects import decimals
from kuberuntime.objects.meta import JSON, JSONObject

STEPS: Final = r"(?P<steps>(?:\.[A-Za-z_$][\w$/-]*|\[[^\[\]]*\])*)"
STEP: Final = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")
ELEMENT_KEY: Final = re.compile(r'\b(\w+)=("[^"]*"|[^,]+)')
OMITS_KEY: Final = re.compile(r': associative list with keys has an element that omits key field "(\w+)"')
DUPLICATE: Final = re.compile(r": duplicate entries for key \[([^\[\]]*)\]")
NO_MAPPING: Final = re.compile(r": (associative list with keys may not have|.+ has no keys$)")
"""Messages about an element of a list that name only the list."""

COMMON: Final = ("apiVersion", "kind", "metadata", "spec", "status")
OF_METADATA: Final = ("labels", "annotations")
LONGEST: Final = 1 << 16
"""The maximum characters of a message that are searched for fields."""


def located(message: str, obj: JSONObject, line_of: Callable[[Path], int | None]) -> tuple[str, int | None]:
    """Return the message with the lines of its other fields in parentheses, and the line of its first field.

    >>> located("a.b: Required value, c[0]: bad", {"a": {}, "c": [1]}, {("a", "b"): 1, ("c", 0): 4}.get)
    ('a.b: Required value, c[0] (line 4): bad', 1)
    """
    first: int | None = None
    parts: list[str] = []
    start = 0
    searched = message[:LONGEST]
    for end, path in _fields(searched, obj):
        line = line_of((*path, *_element(searched[end:], _at(path, obj))))
        first = first or line
        if line is not None and line != first:
            parts.append(f"{message[start:end]} (line {line})")
            start = end
    return "".join([*parts, message[start:]]), first


def _fields(message: str, obj: JSONObject) -> Iterator[tuple[int, Path]]:
    """Yield where each field ends in the message, and its path; `spec.roles[1].spec: spec.size` is one field."""
    names = "|".join(re.escape(name) for name in {**dict.fromkeys(COMMON), **obj})
    previous: tuple[int, Path] | None = None
    for match in re.finditer(rf"(?<![\w/-])(?P<name>{names})\b{STEPS}", message):
        if not match["steps"] and message[match.end() : match.end() + 1] != ":":
            continue
        continues = previous and message[previous[0] : match.start()] == ": " and previous[1][-1] == match["name"]
        if previous and not continues:
            yield previous
        base = previous[1] if previous and continues else (match["name"],)
        previous = match.end(), _path(base, match["steps"], obj)
    if previous:
        yield previous


def _element(rest: str, node: JSON) -> Path:
    """Return the index of the element of a list that the words after the list's name are about; empty if about none."""
    if not isinstance(node, list):
        return ()
    omits, duplicate = OMITS_KEY.match(rest), DUPLICATE.match(rest)
    if omits:
        is_meant = [not (isinstance(item, dict) and omits[1] in item) for item in node]
    elif duplicate:
        same = _same(duplicate[1], node)
        is_meant = [is_same and any(same[:index]) for index, is_same in enumerate(same)]
    else:
        is_meant = [bool(NO_MAPPING.match(rest)) and not isinstance(item, dict) for item in node]
    return (is_meant.index(True),) if True in is_meant else ()


def _at(path: Path, obj: JSONObject) -> JSON:
    node: JSON = obj
    for key in path:
        node = _child(node, key)
    return node


def _path(base: Path, steps: str, obj: JSONObject) -> Path:
    path, node = base, _at(base, obj)
    for name, element in STEP.findall(steps)[:MAX_DEPTH]:
        key = name or _key(element, node)
        if isinstance(node, dict) and key not in node and key in OF_METADATA:  # as `template.labels` of a StatefulSet
            path, node = (*path, "metadata"), _child(node, "metadata")
        path, node = (*path, key), _child(node, key)
    return path


def _key(element: str, node: JSON) -> str | int:
    """Return the index or the key for the text between brackets: `0`, `name="a"`, or a key of a mapping."""
    if not isinstance(node, list):
        return element.strip("\"'")
    if (index := decimals.natural(element)) is not None:
        return index
    same = _same(element, node)
    return same.index(True) if True in same else element


def _same(element: str, items: list[JSON]) -> list[bool]:
    """Return which elements have the keys of a text such as `name="a"`; none have the keys of an empty text."""
    identity = {key: value.strip('"') for key, value in ELEMENT_KEY.findall(element)}
    return [
        bool(identity) and isinstance(item, dict) and all(str(item.get(key)) == identity[key] for key in identity)
        for item in items
    ]


def _child(node: JSON, key: str | int) -> JSON:
    if isinstance(node, dict):
        return node.get(key)
    return node[key] if isinstance(node, list) and isinstance(key, int) and key < len(node) else None
