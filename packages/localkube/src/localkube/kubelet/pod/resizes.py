"""Handles resizes of running pods: container resources, and the reason for an incomplete resize. No I/O.

A resize that fits the node as a whole takes effect at once, and is never deferred: the limits of running containers follow the
spec, and requests only affect the placement of pods.
"""

from collections.abc import Mapping
from typing import Final

from kuberuntime.objects import meta, podresources, quantity
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.quantity import Quantity
from localkube.kubelet.spec import podspec

PENDING: Final = "PodResizePending"


def pending_condition(pod: JSONObject, allocatable: Mapping[str, Quantity]) -> JSONObject | None:
    """Return the condition of a resized pod that requests more than its node has, or None if it fits."""
    reported = {status["name"]: status.get("resources") for status in meta.status(pod).get("containerStatuses") or []}
    changed = [
        regular_container["name"]
        for regular_container in podspec.regular_containers(pod)
        if reported.get(regular_container["name"]) not in (None, regular_container.get("resources") or {})
    ]
    if not changed:
        return None
    for name in podresources.COMPUTE:
        requested, most = _requested_quantity(pod, name), allocatable.get(name)
        if most is not None and requested > most:
            text = f"Node didn't have enough capacity: {name}, requested: {requested}, capacity: {most}"
            return {"type": PENDING, "status": "True", "reason": "Infeasible", "message": text}
    return None


def reported_resources(pod: JSONObject, container: JSONObject, *, is_pending: bool) -> JSONObject:
    """Return the reported resources of a container that has run: the requested or the previous resources."""
    statuses = meta.status(pod).get("containerStatuses") or []
    previous = next((status.get("resources") for status in statuses if status["name"] == container["name"]), None)
    resources: JSONObject = previous if is_pending and previous is not None else container.get("resources") or {}
    requests = resources.get("requests")
    return {"resources": resources} | ({"allocatedResources": requests} if requests else {})


def _requested_quantity(pod: JSONObject, name: str) -> Quantity:
    amounts = (
        podresources.compute_resources(container.get("resources") or {})["requests"]
        for container in podspec.regular_containers(pod)
    )
    return sum((quantity.parse(amount[name]) for amount in amounts if name in amount), start=quantity.ZERO)
