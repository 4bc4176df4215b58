"""The containers that a pod declares, and the one that commands take where none is named. Pure."""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject

DEFAULT: Final = "kubectl.kubernetes.io/default-container"
"""The annotation by which a pod names the container of `kubectl logs` and `exec`."""


def containers(pod: JSONObject) -> list[str]:
    """Return the names of the containers of a pod, init containers last."""
    spec = meta.spec(pod)
    return [str(one.get("name")) for one in (*(spec.get("containers") or []), *(spec.get("initContainers") or []))]


def default_container(pod: JSONObject) -> str:
    """Return the container that the pod's annotation names if it has one of that name, otherwise the first.

    >>> default_container({"spec": {"containers": [{"name": "main"}, {"name": "proxy"}]}})
    'main'
    """
    names = containers(pod)
    annotated = meta.annotations(pod).get(DEFAULT)
    return annotated if annotated in names else names[0]


def note_of_choice(pods: Sequence[JSONObject]) -> str:
    """Return a note where a pod has several containers and does not say which is meant; empty where none does.

    >>> note_of_choice([{"spec": {"containers": [{"name": "main"}, {"name": "proxy"}]}}])
    'note: this is container main; there are main, proxy (-c chooses)'
    """
    for pod in pods:
        names = containers(pod)
        if len(names) > 1 and meta.annotations(pod).get(DEFAULT) not in names:
            return f"note: this is container {names[0]}; there are {', '.join(names)} (-c chooses)"
    return ""
