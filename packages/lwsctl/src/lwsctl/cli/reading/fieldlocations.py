"""Finds the object fields in an error message, and their lines in the manifest. Pure.

The input is a message of an API server, of admission or of a check, the object, and the lines of its fields. The
output is the message, and the line of its first field.
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
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
"""Messages about a list element that contain only the name of the list."""

UNKNOWN: Final = re.compile(r'field "[^"]*$')
"""The prefix of a quoted field in errors of strict decoding. Other quoted strings are values."""

COMMON: Final = ("apiVersion", "kind", "metadata", "spec", "status")
OF_METADATA: Final = ("labels", "annotations")
LONGEST_PATH: Final = 300
LONGEST: Final = 1 << 16
"""The maximum number of characters of a message that are searched for fields."""


def with_line_numbers(message: str, obj: JSONObject, line_of: Callable[[Path], int | None]) -> tuple[str, int | None]:
    """Return the message with the lines of its fields in parentheses, and the line of the first field.

    >>> with_line_numbers("a.b: Required value, c[0]: bad", {"a": {}, "c": [1]}, {("a", "b"): 1, ("c", 0): 4}.get)
    ('a.b: Required value, c[0] (line 4): bad', 1)
    """
    first: int | None = None
    parts: list[str] = []
    start = 0
    searched = message[:LONGEST]
    for end, path in _find_fields(searched, obj):
        line = line_of((*path, *_element_index(searched[end:], _value_at(path, obj))))
        first = first or line
        is_field = message[end : end + 1] == ":" or UNKNOWN.search(message[max(0, end - LONGEST_PATH) : end])
        if line is not None and line != first and is_field:  # not part of a value
            parts.append(f"{message[start:end]} (line {line})")
            start = end
    return "".join([*parts, message[start:]]), first


def _find_fields(message: str, obj: JSONObject) -> Iterator[tuple[int, Path]]:
    """Yield the field paths and their end positions in the message. `spec.roles[1].spec: spec.size` is one field."""
    names = "|".join(re.escape(name) for name in {**dict.fromkeys(COMMON), **obj})
    previous: tuple[int, Path] | None = None
    for match in re.finditer(rf"(?<![\w/-])(?P<name>{names})\b{STEPS}", message):
        if not match["steps"] and message[match.end() : match.end() + 1] != ":":
            continue
        continues = previous and message[previous[0] : match.start()] == ": " and previous[1][-1] == match["name"]
        if previous and not continues:
            yield previous
        base = previous[1] if previous and continues else (match["name"],)
        previous = match.end(), _parse_path(base, match["steps"], obj)
    if previous:
        yield previous


def _element_index(rest: str, node: JSON) -> Path:
    """Return the index of the list element that the message after the list name refers to, or an empty path."""
    if not isinstance(node, list):
        return ()
    omits, duplicate = OMITS_KEY.match(rest), DUPLICATE.match(rest)
    if omits:
        is_meant = [not (isinstance(item, dict) and omits[1] in item) for item in node]
    elif duplicate:
        same = _matching_elements(duplicate[1], node)
        is_meant = [is_same and any(same[:index]) for index, is_same in enumerate(same)]
    else:
        is_meant = [bool(NO_MAPPING.match(rest)) and not isinstance(item, dict) for item in node]
    return (is_meant.index(True),) if True in is_meant else ()


def _value_at(path: Path, obj: JSONObject) -> JSON:
    node: JSON = obj
    for key in path:
        node = _child(node, key)
    return node


def _parse_path(base: Path, steps: str, obj: JSONObject) -> Path:
    path, node, done = base, _value_at(base, obj), 0
    for match in islice(STEP.finditer(steps), MAX_DEPTH):
        if match.start() < done:
            continue  # part of the previous name
        key: str | int = match[1] or _parse_key(match[2], node)
        if isinstance(node, dict) and key not in node and key in OF_METADATA:  # for example `template.labels`
            path, node = (*path, "metadata"), _child(node, "metadata")
        if isinstance(node, dict) and key not in node and (dotted := _field_name(steps[match.start() + 1 :], node)):
            key, done = dotted, match.start() + 1 + len(dotted)
        path, node = (*path, key), _child(node, key)
    return path


def _field_name(rest: str, node: JSONObject) -> str:
    """Return the longest dotted field name at the start of the string, or an empty string if there is none."""
    return max((name for name in node if "." in name and f"{rest}.".startswith(f"{name}.")), key=len, default="")


def _parse_key(element: str, node: JSON) -> str | int:
    """Return the index or key in brackets, such as `0`, `name="a"`, or a map key."""
    if not isinstance(node, list):
        return element.strip("\"'")
    if (index := decimals.natural(element)) is not None:
        return index
    same = _matching_elements(element, node)
    return same.index(True) if True in same else element


def _matching_elements(element: str, items: list[JSON]) -> list[bool]:
    """Return the elements with the keys in a string such as `port=80,protocol="TCP"`.

    Defaults may provide later keys.
    """
    identity = {key: value.strip('"') for key, value in ELEMENT_KEY.findall(element)}
    first = next(iter(identity), "")
    return [
        bool(identity)
        and isinstance(item, dict)
        and str(item.get(first)) == identity[first]
        and all(key not in item or str(item[key]) == text for key, text in identity.items())
        for item in items
    ]


def _child(node: JSON, key: str | int) -> JSON:
    if isinstance(node, dict):
        return node.get(key)
    return node[key] if isinstance(node, list) and isinstance(key, int) and key < len(node) else None
