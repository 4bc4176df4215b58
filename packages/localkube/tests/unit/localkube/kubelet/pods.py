"""Builds pods and container states for unit tests."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from kuberuntime.objects import quantity
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod import state
from localkube.kubelet.pod.state import ContainerState, PodState
from localkube.kubelet.processes.runner import Exit
from localkube.kubelet.spec.fieldref import NodeFacts

NODE = NodeFacts("127.0.0.1", quantity.parse_list({"cpu": "8", "memory": "16Gi"}))
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def deleted(found: JSONObject, grace: int = 30) -> JSONObject:
    times = {"deletionTimestamp": "2026-03-01T12:00:30Z", "deletionGracePeriodSeconds": grace}
    return {**found, "metadata": {**found["metadata"], **times}}


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def set_up(found: JSONObject, *containers: ContainerState, **fields: Any) -> PodState:
    """Return the state of a pod with volumes, a sandbox, and these containers."""
    pod_state = replace(state.initial_state(found, NOW), has_volumes=True, has_sandbox=True, ip="10.0.0.1", **fields)
    for current in containers:
        pod_state = pod_state.with_container(current)
    return pod_state


def waiting(name: str = "main") -> ContainerState:
    return ContainerState(name=name)


def launched(name: str = "main") -> ContainerState:
    return state.record_launch(state.record_start(waiting(name)), f"id-{name}", "host://", NOW)


def running(name: str = "main", *, is_sidecar: bool = False) -> ContainerState:
    return state.record_running(launched(name), frozenset(), is_sidecar=is_sidecar)


def ended(code: int, name: str = "main", at: datetime = NOW) -> ContainerState:
    return state.record_exit(running(name), Exit(code), "", at)
