"""The condition of a pod that Kubernetes is about to delete, with the reason: an eviction, a taint, a lost node."""

from datetime import datetime
from typing import Final

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject

TYPE: Final = "DisruptionTarget"


def reason_of(pod: JSONObject) -> str:
    """Return why the pod is or was about to be deleted; empty if it is not, or if no reason is recorded.

    >>> reason_of({"status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]}})
    'DeletionByPodGC'
    """
    condition = meta.find_condition(pod, TYPE) or {}
    return str(condition.get("reason") or "Unknown") if condition.get("status") == "True" else ""


def condition(reason: str, message: str, now: datetime) -> JSONObject:
    """Return the condition that gives this reason for the deletion of a pod."""
    moment = timestamps.render(now)
    return {"type": TYPE, "status": "True", "reason": reason, "message": message, "lastTransitionTime": moment}


def marked(pod: JSONObject, reason: str, message: str, now: datetime) -> JSONObject:
    """Return the pod as the API server stores it with the condition, which replaces an earlier condition."""
    status = meta.status(pod)
    others = [each for each in status.get("conditions") or [] if each.get("type") != TYPE]
    return pod | {
        "status": {**status, "conditions": [*others, {"lastProbeTime": None} | condition(reason, message, now)]}
    }
