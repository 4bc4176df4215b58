"""Checks the volume claims of a pod: all must exist and be bound before it gets a node."""

from collections.abc import Callable

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from localkube.controllers.scheduler.podinfo import PodInfo

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"


def objection(pod: PodInfo, find_claim: Callable[[ObjectKey], JSONObject | None]) -> str | None:
    """Return why the pod's claims prevent scheduling, None if they do not."""
    for name in pod.claims:
        claim = find_claim(ObjectKey(pod.key.namespace, name))
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if meta.is_deleting(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        if meta.status(claim).get("phase") != "Bound":
            return UNBOUND
    return None
