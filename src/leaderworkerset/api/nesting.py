"""Depth of JSON values: how many objects and lists may stand in one another, so that recursion over them is safe.

In: a decoded value. Out: whether it is too deep. Every function that descends into what a user sent relies on this
bound: with `MAX_DEPTH` levels, and several frames for each, it stays far below Python's recursion limit (1000 frames).
"""

from typing import Final

from leaderworkerset.api.meta import JSON

MAX_DEPTH: Final = 100
"""Levels of objects and lists. Definitions of large custom resources, the deepest objects in use, have about 60."""


def is_too_deep(value: JSON, limit: int = MAX_DEPTH) -> bool:
    """Return whether more than `limit` objects and lists stand in one another; no recursion.

    >>> is_too_deep({"a": [1]}, 2), is_too_deep({"a": [[]]}, 2)
    (False, True)
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
    return bool(level)
