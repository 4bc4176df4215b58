"""The real GPUs that the containers of a pod have on one machine, by an annotation of its kubelet. Pure."""

import json
from collections.abc import Mapping
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

DEVICES: Final = "localkube.internal/devices"
"""Annotation of a pod: its devices by container, as JSON."""

ACCELERATORS_HEALTHY: Final = "AcceleratorsHealthy"
"""The condition of a node whose message names the devices that fail."""


def of_pod(pod: JSONObject | None) -> tuple[str, ...]:
    """Return the devices of a pod, each once.

    >>> of_pod({"metadata": {"annotations": {DEVICES: '{"a":["GPU-1"],"b":["GPU-1","GPU-2"]}'}}})
    ('GPU-1', 'GPU-2')
    """
    try:
        record = json.loads(meta.annotations(pod or {}).get(DEVICES) or "{}")
    except ValueError:
        return ()
    if not isinstance(record, Mapping):
        return ()
    lists = [devices for devices in record.values() if isinstance(devices, list)]
    return tuple(dict.fromkeys(str(device) for devices in lists for device in devices))


def failing(node: JSONObject) -> str:
    """Return which devices of a node fail, and why; empty if none is known to."""
    for condition in meta.status(node).get("conditions") or ():
        if condition.get("type") == ACCELERATORS_HEALTHY and condition.get("status") == "False":
            return str(condition.get("message") or "")
    return ""
