"""Implements POST to a pod's `/binding`. The scheduler assigns the pod to a node."""

from msgspec.structs import replace

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests import body
from localkube.apiserver.requests.call import Call
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading import get

SUCCESS: JSONObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(backend: Backend, call: Call) -> JSONObject:
    """Assign the pod to the node of the Binding in the body."""
    sent = body.read_struct(call, "Binding", {"v1"})
    target = sent["target"]
    node = target.get("name", "")
    if not node or target.get("kind", "Node") not in {"", "Node"}:
        raise apierrors.bad_request("the body must be a v1 Binding with a node name in target.name")
    stored = get.read_stored(backend, call)
    _require_unbound(call, stored)
    uid = meta.uid(sent)
    if uid and uid != meta.uid(stored):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta.uid(stored)}"
        raise apierrors.conflict(call.served.resource, call.name, why)
    backend.store.update(call.key, _bind_pod(stored, node, sent, timestamps.render(backend.clock.now())), stored)
    await backend.store.wait_committed()
    return SUCCESS


def _require_unbound(call: Call, pod: JSONObject) -> None:
    resource = replace(call.served.resource, plural="pods/binding")
    if meta.is_deleting(pod):
        raise apierrors.conflict(resource, call.name, f"pod {call.name} is being deleted, cannot be assigned to a host")
    node = meta.spec(pod).get("nodeName")
    if node:
        raise apierrors.conflict(resource, call.name, f'pod {call.name} is already assigned to node "{node}"')


def _bind_pod(pod: JSONObject, node: str, sent: JSONObject, now: str) -> JSONObject:
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    conditions = [
        condition for condition in meta.status(pod).get("conditions") or [] if condition.get("type") != "PodScheduled"
    ]
    metadata = meta.metadata(pod)
    added = meta.annotations(sent)
    if added:
        metadata = {**metadata, "annotations": meta.annotations(pod) | added}
    return {
        **pod,
        "metadata": metadata,
        "spec": {**meta.spec(pod), "nodeName": node},
        "status": {**meta.status(pod), "conditions": [*conditions, scheduled]},
    }
