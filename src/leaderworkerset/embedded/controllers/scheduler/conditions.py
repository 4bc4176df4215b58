"""The condition PodScheduled of pods that have no node, with the reason why."""

from datetime import datetime
from typing import Final

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.api.plan import Event
from leaderworkerset.embedded.controllers import events

SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"
GATED: Final = "SchedulingGated"
GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"


def without_node(pod: JSONObject, reason: str, message: str, now: datetime) -> list[JSONObject] | None:
    """Return the pod's conditions with PodScheduled=False for this reason; None where they say so already."""
    known = meta.find_condition(pod, SCHEDULED) or {}
    if (known.get("status"), known.get("reason"), known.get("message")) == ("False", reason, message):
        return None
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if known.get("status") == "False":
        since = known.get("lastTransitionTime") or since
    condition = {
        "type": SCHEDULED,
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    others: list[JSONObject] = [one for one in meta.status(pod).get("conditions") or [] if one["type"] != SCHEDULED]
    return [*others, condition]


def scheduled(pod: JSONObject, node: str) -> Event:
    """Tell that a pod got a node."""
    return events.normal(pod, "Scheduled", "Binding", f"Successfully assigned {meta.key(pod)} to {node}")


def failed(pod: JSONObject, message: str) -> Event:
    """Tell why a pod got no node."""
    return events.warning(pod, "FailedScheduling", "Scheduling", message)
