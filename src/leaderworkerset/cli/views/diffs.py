"""Differences between objects for people: unified diffs of their YAML. Pure."""

import difflib
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from leaderworkerset.cli.views import output

SERVER_SIDE: Final = frozenset({"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"})
"""Fields of the metadata that the API server writes."""


def unified(old: JSON, new: JSON, names: tuple[str, str]) -> list[str]:
    """Return the lines of a unified diff, none if both are equal; None means an absent object.

    >>> unified({"a": 1}, {"a": 2}, ("before", "after"))
    ['--- before', '+++ after', '@@ -1 +1 @@', '-a: 1', '+a: 2']
    """
    return list(difflib.unified_diff(_lines(old), _lines(new), *names, lineterm=""))


def shown(obj: JSONObject | None) -> JSONObject | None:
    """Return an object without the fields that the API server adds by itself, which say nothing in a diff."""
    if obj is None:
        return None
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in SERVER_SIDE}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}


def _lines(value: JSON) -> list[str]:
    return [] if value is None else output.as_yaml(_sorted(value)).splitlines()


def _sorted(value: JSON) -> JSON:
    """Order keys, so that only values differ."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value
