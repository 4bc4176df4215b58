"""Finds the pod and container for `/log`, `/exec` and `/portforward`."""

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from localkube.apiserver.model import apierrors
from localkube.apiserver.requests.call import Call
from localkube.apiserver.verbs.backend import Backend
from localkube.apiserver.verbs.reading.get import get


def running_pod(backend: Backend, call: Call) -> JSONObject:
    """Return the pod of a call, which must have a node."""
    pod = get(backend, call)
    if not meta.spec(pod).get("nodeName"):
        raise apierrors.bad_request(f"pod {call.name} does not have a host assigned")
    return pod


def requested_container(pod: JSONObject, container: str) -> str:
    """Return the requested container. Without a name, the pod must have exactly one container."""
    spec, name = meta.spec(pod), meta.name(pod)
    ordinary = _names(spec, "containers")
    initial = _names(spec, "initContainers")
    if not container and len(ordinary) == 1:
        return ordinary[0]
    if not container:
        others = f" or one of the init containers: [{' '.join(initial)}]" if initial else ""
        raise apierrors.bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(ordinary)}]{others}"
        )
    if container not in (*ordinary, *initial, *_names(spec, "ephemeralContainers")):
        raise apierrors.bad_request(f"container {container} is not valid for pod {name}")
    return container


def _names(spec: JSONObject, field: str) -> list[str]:
    return [container["name"] for container in spec.get(field) or []]
