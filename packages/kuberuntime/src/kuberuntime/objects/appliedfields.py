"""Compares a server-side apply with the stored object, so that an apply without changes can be skipped.

The object is unchanged if it has all applied values, and if the field manager does not own other fields, which the
apply would remove. Equivalent values with a different notation (list order, an unusual quantity) count as different.
In that case, the apply is sent, and the API server decides.
"""

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject


def is_applied(desired: JSONObject, stored: JSONObject, manager: str) -> bool:
    """Return whether the stored object would be unchanged after applying `desired` with this field manager.

    >>> owned = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:spec": {"f:a": {}}}}
    >>> stored = {"metadata": {"managedFields": [owned]}, "spec": {"a": 1, "b": 2}}
    >>> is_applied({"spec": {"a": 1}}, stored, "me"), is_applied({"spec": {"b": 2}}, stored, "me")
    (True, False)
    """
    entries = meta.metadata(stored).get("managedFields") or []
    field_sets = [
        entry.get("fieldsV1") or {}
        for entry in entries
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    return len(field_sets) == 1 and _covers(desired, field_sets[0]) and _is_within(desired, stored, field_sets[0])


def without_account(desired: JSONObject, stored: JSONObject) -> JSONObject | None:
    """Return an apply that removes the service account that is not in `desired`, or None if there is none.

    The API server sets the deprecated alias `serviceAccount`, without an owner. The alias restores
    `serviceAccountName`.
    """
    spec, left = _pod_spec(desired), _pod_spec(stored)
    if not spec or "serviceAccountName" in spec or not left.get("serviceAccountName"):
        return None
    entries = meta.metadata(stored).get("managedFields") or []
    if any("f:serviceAccountName" in _pod_spec(entry.get("fieldsV1") or {}, "f:") for entry in entries):
        return None
    template = desired["spec"]["template"] | {"spec": spec | {"serviceAccountName": "", "serviceAccount": ""}}
    return desired | {"spec": desired["spec"] | {"template": template}}


def _pod_spec(obj: JSONObject, prefix: str = "") -> JSONObject:
    """Return the pod template spec of a workload, or its owned fields, or an empty object if there is none."""
    for name in ("spec", "template", "spec"):
        obj = obj.get(f"{prefix}{name}") or {}
    return obj


def _is_within(desired: JSON, stored: JSON, fields: JSONObject) -> bool:
    """Return whether the stored value contains all desired fields. API servers add defaults and drop empty values."""
    if isinstance(desired, dict) and isinstance(stored, dict):
        below = ((value, stored.get(name), fields.get(f"f:{name}")) for name, value in desired.items())
        # the missing field is owned, so it was sent before: API servers drop fields of disabled features
        return all(
            (live is None and own is not None) or _is_within(value, live, own or {}) for value, live, own in below
        )
    if isinstance(desired, list) and isinstance(stored, list):
        return len(desired) == len(stored) and all(_is_within(*pair, {}) for pair in zip(desired, stored, strict=True))
    if stored is None and isinstance(desired, dict):
        return all(_is_within(value, None, {}) for value in desired.values())
    return (stored is None and not desired) or (
        desired == stored and isinstance(desired, bool) == isinstance(stored, bool)
    )


def _covers(desired: JSON, fields: JSONObject) -> bool:
    """Return whether all fields of a set (FieldsV1) are desired fields."""
    return all(_is_desired(desired, element, below) for element, below in fields.items() if element != ".")


def _is_desired(desired: JSON, element: str, below: JSONObject) -> bool:
    kind, _, text = element.partition(":")
    if kind == "f":
        return isinstance(desired, dict) and text in desired and _covers(desired[text], below)
    if not isinstance(desired, list):
        return False
    value = msgspec.json.decode(text)
    if kind == "k":
        return any(_has_keys(item, value) and _covers(item, below) for item in desired)
    return value in desired if kind == "v" else value in range(len(desired))


def _has_keys(item: JSON, keys: JSONObject) -> bool:
    """Return whether a list item has these keys. A missing key matches any value, because its default is unknown."""
    return isinstance(item, dict) and all(item.get(name, value) == value for name, value in keys.items())
