"""Implements JSON merge patch (RFC 7386)."""

from kuberuntime.objects.meta import JSON


def apply(target: JSON, patch: JSON) -> JSON:
    """Merge the patch into the target. Null removes a field, objects are merged, and other values are replaced.

    >>> apply({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 4}})
    {'b': {'c': 4, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = apply(merged.get(name), change)
    return merged
