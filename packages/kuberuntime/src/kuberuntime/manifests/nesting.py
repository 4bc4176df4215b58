"""Limits the nesting depth of JSON values, so that recursion over them is safe.

Input: JSON text, or a decoded value. Output: the value, or an error if it is too deep. Every recursive function over
user input relies on this limit: `MAX_DEPTH` levels, with several frames each, are far below Python's recursion limit
(1000 frames).
"""

from typing import Final

import msgspec

from kuberuntime.objects.meta import JSON

MAX_DEPTH: Final = 100
"""The maximum number of levels of objects and lists.

Large CRDs, which are the deepest objects in use, have about 60 levels.
"""

_NESTING: Final = (dict, list)
"""The types of JSON objects and arrays. This is a tuple, because `dict | list` would be evaluated for each value."""

TOO_DEEP: Final = f"exceeded max depth: more than {MAX_DEPTH} nested objects and lists"


class DepthError(msgspec.DecodeError):
    """The nesting of objects and lists in a JSON document exceeds `MAX_DEPTH`."""


def decode(content: bytes | str) -> JSON:
    """Decode JSON. Raise `msgspec.DecodeError` if it is invalid, or `DepthError` if it is nested too deeply."""
    try:
        value = msgspec.json.decode(content)
    except RecursionError as error:
        raise DepthError(TOO_DEEP) from error
    if is_too_deep(value):
        raise DepthError(TOO_DEEP)
    return value


def is_too_deep(value: JSON, limit: int = MAX_DEPTH) -> bool:
    """Return whether the nesting of objects and lists exceeds `limit`. This function is not recursive.

    >>> is_too_deep({"a": [1]}, 2), is_too_deep({"a": [[]]}, 2)
    (False, True)
    """
    level = [value] if isinstance(value, _NESTING) else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, _NESTING)
        ]
    return bool(level)
