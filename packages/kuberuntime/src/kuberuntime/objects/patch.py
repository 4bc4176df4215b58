"""Builds JSON patches (RFC 6902) from two JSON values, for the responses of admission webhooks.

A patch contains only `add`, `replace` and `remove` operations, does not change equal parts, and converts `old` to `new`
for any two JSON values.
"""

from collections.abc import Iterator

from kuberuntime.objects.meta import JSON, JSONObject


def diff(old: JSON, new: JSON) -> list[JSONObject]:
    """Return the JSON patch that converts `old` to `new`. It is empty if they are equal.

    >>> diff({"a": [1, 2]}, {"a": [0, 1, 2], "b": True})
    [{'op': 'add', 'path': '/a/0', 'value': 0}, {'op': 'add', 'path': '/b', 'value': True}]
    """
    return list(_diff(old, new, ""))


def equal(left: JSON, right: JSON) -> bool:
    """Compare JSON values strictly at any depth. For example, `true` differs from 1, and 1 differs from 1.0."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(value, right[name]) for name, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def _diff(old: JSON, new: JSON, path: str) -> Iterator[JSONObject]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _diff_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _diff_lists(old, new, path)
    elif not equal(old, new):
        yield {"op": "replace", "path": path, "value": new}


def _diff_objects(old: JSONObject, new: JSONObject, path: str) -> Iterator[JSONObject]:
    for name in old:
        if name not in new:
            yield {"op": "remove", "path": f"{path}/{_escape(name)}"}
    for name, value in new.items():
        if name not in old:
            yield {"op": "add", "path": f"{path}/{_escape(name)}", "value": value}
        elif value is not old[name]:
            yield from _diff(old[name], value, f"{path}/{_escape(name)}")


def _diff_lists(old: list[JSON], new: list[JSON], path: str) -> Iterator[JSONObject]:
    """Skip the common start and end, change the items between them, and then remove or add the rest."""
    shorter = min(len(old), len(new))
    start = next((i for i in range(shorter) if not equal(old[i], new[i])), shorter)
    end = next((i for i in range(shorter - start) if not equal(old[-1 - i], new[-1 - i])), shorter - start)
    middle = shorter - end
    for i in range(start, middle):
        yield from _diff(old[i], new[i], f"{path}/{i}")
    for i in reversed(range(middle, len(old) - end)):
        yield {"op": "remove", "path": f"{path}/{i}"}
    for i in range(middle, len(new) - end):
        yield {"op": "add", "path": f"{path}/{i}", "value": new[i]}


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
