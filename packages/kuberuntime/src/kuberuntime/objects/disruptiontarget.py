"""Reads and writes the DisruptionTarget condition, which contains the reason for a pod deletion."""

from datetime import datetime
from typing import Final

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject

TYPE: Final = "DisruptionTarget"


def disruption_reason(pod: JSONObject) -> str:
    """Return the reason in the pod's DisruptionTarget condition, or an empty string if there is no such condition.

    >>> disruption_reason({"status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]}})
    'DeletionByPodGC'
    """
    condition = meta.find_condition(pod, TYPE) or {}
    return str(condition.get("reason") or "Unknown") if condition.get("status") == "True" else ""


def condition(reason: str, message: str, now: datetime) -> JSONObject:
    """Return a DisruptionTarget condition with this reason."""
    moment = timestamps.render(now)
    return {"type": TYPE, "status": "True", "reason": reason, "message": message, "lastTransitionTime": moment}


def with_condition(pod: JSONObject, reason: str, message: str, now: datetime) -> JSONObject:
    """Return the pod with the condition, which replaces a previous DisruptionTarget condition."""
    status = meta.status(pod)
    others = [each for each in status.get("conditions") or [] if each.get("type") != TYPE]
    return pod | {
        "status": {**status, "conditions": [*others, {"lastProbeTime": None} | condition(reason, message, now)]}
    }
