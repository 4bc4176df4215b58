"""Builds pods as the API server returns them. Tests set the relevant fields, and other fields have defaults."""

from collections.abc import Mapping
from typing import Any

from kuberuntime.objects.meta import JSONObject


def merge(base: JSONObject, change: Mapping[str, Any]) -> JSONObject:
    """Return `base` with `change` merged into it recursively."""
    merged = dict(base)
    for field, value in change.items():
        before = merged.get(field)
        merged[field] = merge(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged


def condition(kind: str, *, is_true: bool = True, **fields: Any) -> JSONObject:
    """Return a condition."""
    return {"type": kind, "status": "True" if is_true else "False", **fields}


def pod(
    name: str = "web-0",
    *,
    ready: bool | None = None,
    node: str = "node-0",
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
    requests: Mapping[str, str] | None = None,
    **status: Any,
) -> JSONObject:
    """Return a pod with one container and its resource requests.

    `metadata` and `spec` are merged into the defaults, other fields into the status.
    """
    container = {"name": "main", "image": "app:1"} | ({"resources": {"requests": dict(requests)}} if requests else {})
    base: JSONObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "labels": {}, "annotations": {}},
        "spec": {"containers": [container]} | ({"nodeName": node} if node else {}),
        "status": {"phase": "Pending" if ready is None else "Running"}
        | ({} if ready is None else {"conditions": [condition("Ready", is_true=ready)]}),
    }
    return merge(base, {"metadata": metadata or {}, "spec": spec or {}, "status": status})
