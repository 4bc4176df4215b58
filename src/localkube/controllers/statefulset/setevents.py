"""The events of the StatefulSet controller; the texts are those of kube-controller-manager."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event
from localkube.controllers import eventobjects


def pod_done(statefulset: JSONObject, verb: str, pod: str) -> Event:
    """Build the event of a pod that was created or deleted."""
    note = f"{verb.title()} Pod {pod} in StatefulSet {meta.name(statefulset)} successful"
    return eventobjects.normal(statefulset, f"Successful{verb.title()}", verb.title(), note)


def pod_failed(statefulset: JSONObject, verb: str, pod: str, error: str = "{error}") -> Event:
    """Build the event of a pod that could not be created or deleted."""
    note = f"{verb.title()} Pod {pod} in StatefulSet {meta.name(statefulset)} failed error: {error}"
    return eventobjects.warning(statefulset, f"Failed{verb.title()}", verb.title(), note)


def claim_done(statefulset: JSONObject, claim: str, pod: str) -> Event:
    """Build the event of a volume claim that was created."""
    note = f"Create Claim {claim} Pod {pod} in StatefulSet {meta.name(statefulset)} success"
    return eventobjects.normal(statefulset, "SuccessfulCreate", "Create", note)


def claim_failed(statefulset: JSONObject, claim: str, pod: str) -> Event:
    """Build the event of a volume claim that could not be created."""
    note = f"Create Claim {claim} for Pod {pod} in StatefulSet {meta.name(statefulset)} failed error: {{error}}"
    return eventobjects.warning(statefulset, "FailedCreate", "Create", note)
