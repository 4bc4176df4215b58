"""Compares the result of a server-side apply with a stored object, to skip an apply that changes nothing.

An apply changes nothing if the object has all applied values, and if the field manager owns no further fields, which
the apply would remove. Values that only look different (another order of list items, an unusual quantity) count as
different: then the apply is sent, and the API server decides.
"""

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject


def is_applied(wanted: JSONObject, stored: JSONObject, manager: str) -> bool:
    """Return whether applying `wanted` as the field manager would leave the stored object unchanged.

    >>> owned = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:spec": {"f:a": {}}}}
    >>> stored = {"metadata": {"managedFields": [owned]}, "spec": {"a": 1, "b": 2}}
    >>> is_applied({"spec": {"a": 1}}, stored, "me"), is_applied({"spec": {"b": 2}}, stored, "me")
    (True, False)
    """
    entries = meta.metadata(stored).get("managedFields") or []
    owned = [
        entry.get("fieldsV1") or {}
        for entry in entries
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    return len(owned) == 1 and _covers(wanted, owned[0]) and _is_within(wanted, stored, owned[0])


def _is_within(wanted: JSON, stored: JSON, owned: JSONObject) -> bool:
    """Return whether the stored value has all that is wanted; the API server adds defaults and drops empty values."""
    if isinstance(wanted, dict) and isinstance(stored, dict):
        below = ((value, stored.get(name), owned.get(f"f:{name}")) for name, value in wanted.items())
        # an absent field that is owned was sent before: the API server drops fields of disabled features
        return all(
            (found is None and own is not None) or _is_within(value, found, own or {}) for value, found, own in below
        )
    if isinstance(wanted, list) and isinstance(stored, list):
        return len(wanted) == len(stored) and all(_is_within(*pair, {}) for pair in zip(wanted, stored, strict=True))
    if stored is None and isinstance(wanted, dict):
        return all(_is_within(value, None, {}) for value in wanted.values())
    return (stored is None and not wanted) or (
        wanted == stored and isinstance(wanted, bool) == isinstance(stored, bool)
    )


def _covers(wanted: JSON, owned: JSONObject) -> bool:
    """Return whether the fields of a set (FieldsV1) are all among the wanted ones."""
    return all(_has(wanted, element, below) for element, below in owned.items() if element != ".")


def _has(wanted: JSON, element: str, below: JSONObject) -> bool:
    kind, _, text = element.partition(":")
    if kind == "f":
        return isinstance(wanted, dict) and text in wanted and _covers(wanted[text], below)
    if not isinstance(wanted, list):
        return False
    value = msgspec.json.decode(text)
    if kind == "k":
        return any(_has_keys(item, value) and _covers(item, below) for item in wanted)
    return value in wanted if kind == "v" else value in range(len(wanted))


def _has_keys(item: JSON, keys: JSONObject) -> bool:
    """Return whether a list item has these keys; an absent key has the default, which only the API server knows."""
    return isinstance(item, dict) and all(item.get(name, value) == value for name, value in keys.items())
