"""Builds the scheduler's writes: bindings, the PodScheduled condition of unschedulable pods, and events.

The API server sets the condition of pods with scheduling gates when they are created.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, podclaims, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Create, Event, Patch, guarded_patch
from localkube.controllers import eventobjects
from localkube.controllers.scheduler.podinfo import PodInfo

SCHEDULED: Final = "PodScheduled"
UNSCHEDULABLE: Final = "Unschedulable"


def bind(pod: JSONObject, node: str) -> Create:
    """Return the action that binds a pod to a node."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    identity = {"name": meta.name(pod), "namespace": meta.namespace(pod), "uid": meta.uid(pod)}
    return Create(
        resource=PODS,
        object={"apiVersion": "v1", "kind": "Binding", "metadata": identity, "target": target},
        subresource="binding",
        on_success=(scheduled_event(pod, node),),
    )


def report_unschedulable(pod: JSONObject, message: str, now: datetime) -> Patch | None:
    """Return the action that records the reason why the pod is unschedulable, or None if it is already recorded."""
    changed = unschedulable_conditions(pod, message, now)
    if changed is None:
        return None
    patch = guarded_patch(PODS, pod, {"status": {"conditions": changed}}, subresource="status")
    return replace(patch, on_success=(failed_event(pod, message),))


def unschedulable_conditions(pod: JSONObject, message: str, now: datetime) -> list[JSONObject] | None:
    """Return the pod's conditions with PodScheduled=False and the reason, or None if they are up to date."""
    previous = meta.find_condition(pod, SCHEDULED) or {}
    if (previous.get("status"), previous.get("reason"), previous.get("message")) == ("False", UNSCHEDULABLE, message):
        return None
    condition = {
        "type": SCHEDULED,
        "status": "False",
        "lastProbeTime": None,
        "reason": UNSCHEDULABLE,
        "message": message,
    }
    return meta.with_condition(pod, condition, timestamps.render(now))


def scheduled_event(pod: JSONObject, node: str) -> Event:
    """Build the event for a scheduled pod."""
    return eventobjects.normal_event(pod, "Scheduled", "Binding", f"Successfully assigned {meta.key(pod)} to {node}")


def failed_event(pod: JSONObject, message: str) -> Event:
    """Build the event for an unschedulable pod."""
    return eventobjects.warning_event(pod, "FailedScheduling", "Scheduling", message)


UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def claim_rejection_reason(pod: PodInfo, find_claim: Callable[[ObjectKey], JSONObject | None]) -> str | None:
    """Return the reason why the claims of the pod prevent scheduling, or None if they do not."""
    for name in pod.claims:
        claim = find_claim(ObjectKey(pod.key.namespace, name))
        if claim is None and name in pod.own_claims:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if name in pod.own_claims and not podclaims.is_claim_of_pod(claim, pod.uid):
            return f"PVC {meta.key(claim)} was not created for pod {pod.key} (pod is not owner)"
        if meta.is_deleting(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if meta.status(claim).get("phase") != "Bound":
            return UNBOUND
    return None
