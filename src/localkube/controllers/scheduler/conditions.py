"""The condition PodScheduled of pods that fit on no node, and the scheduler's events.

Pods with scheduling gates get their condition from the API server when they are created.
"""

from datetime import datetime
from typing import Final

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event
from localkube.controllers.framework import events

SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"


def unschedulable(pod: JSONObject, message: str, now: datetime) -> list[JSONObject] | None:
    """Return the pod's conditions with PodScheduled=False and why; None where they say so already."""
    known = meta.find_condition(pod, SCHEDULED) or {}
    if (known.get("status"), known.get("reason"), known.get("message")) == ("False", UNSCHEDULABLE, message):
        return None
    since = timestamps.render(now)
    if known.get("status") == "False":
        since = known.get("lastTransitionTime") or since
    condition = {
        "type": SCHEDULED,
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "reason": UNSCHEDULABLE,
        "message": message,
    }
    others: list[JSONObject] = [one for one in meta.status(pod).get("conditions") or [] if one["type"] != SCHEDULED]
    return [*others, condition]


def scheduled(pod: JSONObject, node: str) -> Event:
    """Tell that a pod got a node."""
    return events.normal(pod, "Scheduled", "Binding", f"Successfully assigned {meta.key(pod)} to {node}")


def failed(pod: JSONObject, message: str) -> Event:
    """Return why a pod got no node."""
    return events.warning(pod, "FailedScheduling", "Scheduling", message)
