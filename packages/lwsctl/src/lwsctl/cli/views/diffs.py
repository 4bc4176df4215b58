"""Computes unified diffs of objects as YAML. Pure."""

import difflib
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject
from lwsctl.cli.views import output

SERVER_SIDE: Final = frozenset({"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"})
"""Metadata fields that the API server writes."""

EMPTY_IS_ABSENT: Final = frozenset({"metadata", "resources"})
"""Fields of templates and containers that have the same meaning if empty or absent.

Revisions contain them as empty.
"""


def unified_diff(old: JSON, new: JSON, names: tuple[str, str]) -> list[str]:
    """Return the lines of a unified diff, or no lines if the objects are equal.

    None means that the object does not exist.

    >>> unified_diff({"a": 1}, {"a": 2}, ("before", "after"))
    ['--- before', '+++ after', '@@ -1 +1 @@', '-a: 1', '+a: 2']
    """
    return list(difflib.unified_diff(_lines(old), _lines(new), *names, lineterm=""))


def comparable(obj: JSONObject | None) -> JSONObject | None:
    """Return an object without fields that are irrelevant in a diff, such as empty and server-set fields."""
    if obj is None:
        return None
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in SERVER_SIDE}
    rest = {name: value for name, value in obj.items() if name not in ("status", "metadata")}
    return {name: without_empty(value) for name, value in rest.items()} | {"metadata": metadata}


def without_empty(value: JSON) -> JSON:
    """Return a value without fields that have the same meaning if empty or absent. The value may be nested.

    >>> without_empty({"containers": [{"name": "a", "resources": {}}], "volumes": [{"emptyDir": {}}], "metadata": {}})
    {'containers': [{'name': 'a'}], 'volumes': [{'emptyDir': {}}]}
    """
    if isinstance(value, dict):
        fields = {name: inner for name, inner in value.items() if inner != {} or name not in EMPTY_IS_ABSENT}
        return {name: without_empty(inner) for name, inner in fields.items()}
    return [without_empty(inner) for inner in value] if isinstance(value, list) else value


def _lines(value: JSON) -> list[str]:
    return [] if value is None else output.as_yaml(_sort_keys(value)).splitlines()


def _sort_keys(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {name: _sort_keys(value[name]) for name in sorted(value)}
    return [_sort_keys(inner) for inner in value] if isinstance(value, list) else value
