"""Determines the host GPUs that the containers in a pod use, from annotations that the kubelet sets. Pure."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import mask_message
from lwsctl.views.wording import duration

DEVICES: Final = "localkube.internal/devices"
"""The pod annotation that contains the devices of each container as JSON."""

IDLE: Final = "localkube.internal/devices-idle-since"
"""The pod annotation that contains the idle devices as JSON, with the time at which each became idle."""

ACCELERATORS_HEALTHY: Final = "AcceleratorsHealthy"
"""The node condition whose message lists the failing devices."""


def pod_devices(pod: JSONObject | None) -> tuple[str, ...]:
    """Return the distinct devices of a pod.

    >>> pod_devices({"metadata": {"annotations": {DEVICES: '{"a":["GPU-1"],"b":["GPU-1","GPU-2"]}'}}})
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


def idle_text(pod: JSONObject | None, now: datetime) -> str:
    """Return how long the devices of a pod have been idle, or an empty string if they are busy or unknown.

    >>> from datetime import UTC
    >>> note = {DEVICES: '{"a":["GPU-1","GPU-2"]}', IDLE: '{"GPU-1":"2026-01-01T00:00:00Z"}'}
    >>> idle_text({"metadata": {"annotations": note}}, datetime(2026, 1, 1, 0, 5, tzinfo=UTC))
    '1 of 2 GPUs idle for 5m'
    """
    try:
        record = json.loads(meta.annotations(pod or {}).get(IDLE) or "{}")
        since = [timestamps.parse(moment) for moment in record.values()]
    except (ValueError, AttributeError, TypeError):
        return ""
    if not since:
        return ""
    own = max(len(pod_devices(pod)), len(since))
    which = f"{len(since)} of {own} GPUs" if len(since) < own else "GPU" if own == 1 else f"all {own} GPUs"
    return f"{which} idle for {duration(now - max(since))}"


def failing_devices(node: JSONObject) -> str:
    """Return the failing devices of a node and the reason, or an empty string if there are none."""
    for condition in meta.status(node).get("conditions") or ():
        if condition.get("type") == ACCELERATORS_HEALTHY and condition.get("status") == "False":
            return mask_message(str(condition.get("message") or ""))
    return ""
