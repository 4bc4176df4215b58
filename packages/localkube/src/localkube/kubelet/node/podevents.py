"""Builds the kubelet's events about pods and their containers, without I/O."""

from typing import Final

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podstate import ALL_RESTARTED
from kuberuntime.plan import Event
from localkube.kubelet.spec import podspec

REPORTER: Final = "kubelet"

ACTIONS: Final = {
    "Created": "Creating",
    "Started": "Starting",
    "Killing": "Killing",
    "BackOff": "Restarting",
    "Unhealthy": "Probing",
    "Failed": "Starting",
    "FailedMount": "Mounting",
    "FailedCreatePodSandBox": "Creating",
    "FailedAllocateDevices": "Allocating",
    "DeviceUnhealthy": "Watching",
    "FailedPostStartHook": "Starting",
    "FailedPreStopHook": "Killing",
    "DeadlineExceeded": "Killing",
    "PortConflict": "Starting",
    "ClusterRestarted": "Restarting",
    "NodeRestarted": "Restarting",
    ALL_RESTARTED: "Restarting",
    "FailedSync": "Syncing",
}
"""The reasons of the kubelet's events, with their actions."""

NORMAL: Final = frozenset({"Created", "Started", "Killing", "ClusterRestarted", "NodeRestarted", ALL_RESTARTED})


def build(pod: JSONObject, reason: str, note: str, container: str = "") -> Event:
    """Build an event about a pod, or about one of its containers."""
    return Event(
        type="Normal" if reason in NORMAL else "Warning",
        reason=reason,
        action=ACTIONS[reason],
        note=note,
        regarding=_object_reference(pod, container),
    )


def _object_reference(pod: JSONObject, container: str) -> JSONObject:
    reference = {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": meta.namespace(pod),
        "name": meta.name(pod),
        "uid": meta.uid(pod),
        "resourceVersion": meta.resource_version(pod),
    }
    if not container:
        return reference
    is_init = any(init["name"] == container for init in podspec.init_containers(pod))
    return reference | {"fieldPath": f"spec.{'initContainers' if is_init else 'containers'}{{{container}}}"}
