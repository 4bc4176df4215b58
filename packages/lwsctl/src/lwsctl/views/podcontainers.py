"""Determines the containers that a pod declares, and the default container for commands. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from lwsctl.model.admission import gate_reason
from lwsctl.views.wording import format_count

DEFAULT: Final = "kubectl.kubernetes.io/default-container"
"""The annotation that contains the default container for `kubectl logs` and `exec`."""


def containers(pod: JSONObject) -> list[str]:
    """Return the names of the containers of a pod, init containers last."""
    spec = meta.spec(pod)
    return [str(item.get("name")) for item in (*(spec.get("containers") or []), *(spec.get("initContainers") or []))]


def default_container(pod: JSONObject) -> str:
    """Return the container in the annotation of the pod, or the first container if it does not exist.

    >>> default_container({"spec": {"containers": [{"name": "main"}, {"name": "proxy"}]}})
    'main'
    """
    names = containers(pod)
    default = meta.annotations(pod).get(DEFAULT)
    return default if default in names else names[0]


def default_container_note(pods: Sequence[JSONObject]) -> str:
    """Return a note if a pod has several containers but no default container, or else an empty string.

    >>> default_container_note([{"spec": {"containers": [{"name": "main"}, {"name": "proxy"}]}}])
    'note: this is container main; use -c to select another of main, proxy'
    """
    for pod in pods:
        names = containers(pod)
        if len(names) > 1 and meta.annotations(pod).get(DEFAULT) not in names:
            return f"note: this is container {names[0]}; use -c to select another of {', '.join(names)}"
    return ""


def container_status(pod: JSONObject, container: str | None) -> JSONObject:
    """Return the status of a container, or an empty object if it does not exist.

    If `container` is None, use the default container.
    """
    name = container or default_container(pod)
    return next((entry for entry in podstate.container_statuses(pod) if entry.get("name") == name), {})


def has_log(status: JSONObject) -> bool:
    """Return whether the container has started. It is then running, terminated, or waiting to restart."""
    states = (status.get("state") or {}, status.get("lastState") or {})
    return any("running" in state or "terminated" in state for state in states)


def missing_log_reason(pod: JSONObject, container: str | None) -> str:
    """Return the reason why a container has no log, or an empty string if it has a log or this is unknown.

    >>> missing_log_reason({"spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending"}}, None)
    'no log yet (Pending): it is not assigned to a node yet'
    """
    if container not in {None, *containers(pod)} or has_log(container_status(pod, container)):
        return ""
    why = " ".join((gate_reason(pod) or _reason(pod)).split())
    return f"no log yet ({podstate.state(pod)}){f': {why}' if why else ''}{_previous_run_note(pod, container)}"


def waiting_for_logs(pods: Sequence[JSONObject], container: str | None) -> tuple[str, str] | None:
    """Return the state of the first pod without a log, and a sentence about all pods in this state.

    Return None if every pod has a log.
    """
    unlogged_pods = [(pod, why) for pod in pods if (why := missing_log_reason(pod, container))]
    if not unlogged_pods:
        return None
    return podstate.state(unlogged_pods[0][0]), group_by_reason((meta.name(pod), why) for pod, why in unlogged_pods)[0]


def group_by_reason(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a sentence for each reason. Pods and reasons are in pairs, whose order is preserved.

    >>> group_by_reason([("web-0", "no log yet (Pending)"), ("web-1", "no log yet (Pending)"), ("web-2", "no log yet (Unknown)")])
    ['web-0 and 1 more pod have no log yet (Pending)', 'web-2 has no log yet (Unknown)']
    """
    pods: dict[str, list[str]] = {}
    for name, why in pairs:
        pods.setdefault(why, []).append(name)
    return [
        f"{names[0]} has {why}"
        if len(names) == 1
        else f"{names[0]} and {format_count(len(names) - 1, 'more pod')} have {why}"
        for why, names in pods.items()
    ]


def _reason(pod: JSONObject) -> str:
    """Return what the pod waits for, unless it waits only for its containers to become ready."""
    why = podstate.waiting_reason(pod)
    if why and why != str((meta.find_condition(pod, "Ready") or {}).get("message") or ""):
        return why
    return "" if meta.spec(pod).get("nodeName") else "it is not assigned to a node yet"


def _previous_run_note(pod: JSONObject, container: str | None) -> str:
    inits = [str(init_container.get("name")) for init_container in meta.spec(pod).get("initContainers") or []]
    logged = [name for name in inits if name != container and has_log(container_status(pod, name))]
    return f"; to read the log of its init container, use -c {logged[-1]}" if logged else ""
