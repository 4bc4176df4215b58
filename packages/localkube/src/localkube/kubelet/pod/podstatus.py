"""Builds the status of a pod in the API from its spec and the states of its containers, without I/O.

Parts of the status by other writers are kept: conditions that are not the kubelet's, and unknown fields.
"""

from datetime import datetime, timedelta
from typing import Final

from kuberuntime.objects import meta, podstate, timestamps
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod import lifecycle, resizes
from localkube.kubelet.pod.state import CRASH_LOOP, ContainerState, Phase, PodState, Termination, Waiting
from localkube.kubelet.spec import podspec, restarts
from localkube.kubelet.spec.fieldref import NodeFacts

STUB_IMAGE: Final = "stub://"
"""The imageID prefix of containers that the built-in stub server replaces."""

OVER_LIMIT: Final = "MemoryLimitExceeded"
"""The condition of pods with a container that exceeds its memory limit, if the cluster enforces no limits."""

STUB_CONDITION: Final = "Stub"
"""The condition of pods with stub containers. Its message lists them."""


def build(pod: JSONObject, state: PodState, now: datetime, node: NodeFacts) -> JSONObject:
    """Return the whole status of the pod."""
    old = meta.status(pod)
    phase = pod_phase(pod, state)
    pending = resizes.pending_condition(pod, node.allocatable)
    new: JSONObject = old | {
        "phase": phase,
        "conditions": _conditions(pod, state, phase, now, pending),
        "hostIP": node.host_ip,
        "hostIPs": [{"ip": node.host_ip}],
        "startTime": timestamps.render(state.start_time),
        "containerStatuses": _container_statuses(
            pod, podspec.regular_containers(pod), state, is_pending=pending is not None
        ),
    }
    if podspec.init_containers(pod):
        new["initContainerStatuses"] = _container_statuses(
            pod, podspec.init_containers(pod), state, is_pending=pending is not None
        )
    if state.ip:
        new |= {"podIP": state.ip, "podIPs": [{"ip": state.ip}]}
    if state.failure and phase == "Failed":
        new |= {"reason": state.failure.reason, "message": state.failure.message}
    return new


def pod_phase(pod: JSONObject, state: PodState) -> str:
    """Return the phase: Pending until every container has run, and Running until the pod has terminated."""
    live = any(container.is_live for container in state.containers.values())
    regular = list(state.container_states(podspec.regular_containers(pod)))
    begun = is_initialized(pod, state) and all(_has_run(container) for container in regular)
    if state.failure or lifecycle.is_settled(pod, state) or (meta.is_deleting(pod) and begun and not live):
        if live:
            return "Running"
        good = not state.failure and all(_exit_code(container) == 0 for container in regular)
        return "Succeeded" if good else "Failed"
    return "Running" if begun else "Pending"


def _is_running(container: ContainerState) -> bool:
    return container.phase in (Phase.RUNNING, Phase.STOPPING)


def _has_run(container: ContainerState) -> bool:
    return _is_running(container) or _exit_code(container) is not None


def _exit_code(container: ContainerState) -> int | None:
    ended = container.termination or container.last
    return ended.exit_code if ended else None


def _container_statuses(
    pod: JSONObject, containers: list[JSONObject], state: PodState, *, is_pending: bool
) -> list[JSONObject]:
    initialized = is_initialized(pod, state)
    statuses = [_container_status(pod, container, state, initialized=initialized) for container in containers]
    return [
        status | resizes.reported_resources(pod, container, is_pending=is_pending)
        if _has_run(state.containers[status["name"]])
        else status
        for container, status in zip(containers, statuses, strict=True)
    ]


def is_initialized(pod: JSONObject, state: PodState) -> bool:
    """Return whether all init containers have completed, and all sidecars have started."""
    return all(container.has_passed_startup for container in state.container_states(podspec.init_containers(pod)))


def _container_status(pod: JSONObject, container: JSONObject, state: PodState, *, initialized: bool) -> JSONObject:
    current = state.containers[container["name"]]
    is_init = container in podspec.init_containers(pod)
    reason = "PodInitializing" if podspec.init_containers(pod) and not initialized else "ContainerCreating"
    status: JSONObject = {
        "name": current.name,
        "state": _container_state(current, Waiting(reason, state.problem)),
        "lastState": {"terminated": _terminated_state(current.last)} if current.last else {},
        "ready": is_ready(pod, container, current, is_init=is_init),
        "restartCount": current.restarts,
        "image": current.image or container.get("image") or "",
        "imageID": current.image_id,
        "started": current.is_started,
    }
    # like a kubelet, report the terminated container until a new one starts
    container_id = current.container_id or (current.last.container_id if current.last else "")
    return status | ({"containerID": f"process://{container_id}"} if container_id else {})


def _container_state(current: ContainerState, default: Waiting) -> JSONObject:
    match current.phase:
        case Phase.RUNNING | Phase.STOPPING if current.started_at is not None:
            return {"running": {"startedAt": timestamps.render(current.started_at)}}
        case Phase.TERMINATED if current.termination is not None:
            return {"terminated": _terminated_state(current.termination)}
        case _:
            waiting = current.waiting or default
            return {"waiting": {"reason": waiting.reason} | ({"message": waiting.message} if waiting.message else {})}


def backoff_waiting(pod: JSONObject, container: str, wait: timedelta) -> Waiting:
    """Return the waiting state of a container in backoff."""
    whose = f"container={container} pod={meta.name(pod)}_{meta.namespace(pod)}({meta.uid(pod)})"
    return Waiting(CRASH_LOOP, f"back-off {int(wait.total_seconds())}s restarting failed {whose}")


def _terminated_state(ended: Termination) -> JSONObject:
    status: JSONObject = {
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "startedAt": timestamps.render(ended.started_at) if ended.started_at else None,
        "finishedAt": timestamps.render(ended.finished_at),
        "signal": ended.signal,
        "message": ended.message,
        "containerID": f"process://{ended.container_id}" if ended.container_id else "",
    }
    return {key: value for key, value in status.items() if value or key == "exitCode"}


def is_ready(pod: JSONObject, container: JSONObject, current: ContainerState, *, is_init: bool) -> bool:
    """Return whether the container is ready. Init containers must be complete, and others need a probe."""
    if is_init and not podspec.is_sidecar(container, pod):
        return current.has_passed_startup
    return _is_running(current) and current.is_started and current.is_ready


def _conditions(
    pod: JSONObject, state: PodState, phase: str, now: datetime, pending: JSONObject | None
) -> list[JSONObject]:
    conditions = meta.status(pod).get("conditions") or []
    old = {condition["type"]: condition for condition in conditions if pending or condition["type"] != resizes.PENDING}
    computed = {condition["type"]: condition for condition in _compute_conditions(pod, state, phase, old)}
    computed |= {resizes.PENDING: pending} if pending else {}
    existing = [computed.pop(kind, condition) for kind, condition in old.items()]
    return [_with_time(condition, old.get(condition["type"], {}), now) for condition in [*existing, *computed.values()]]


def _compute_conditions(pod: JSONObject, state: PodState, phase: str, old: dict[str, JSONObject]) -> list[JSONObject]:
    incomplete = [c["name"] for c in podspec.init_containers(pod) if not state.containers[c["name"]].has_passed_startup]
    may_restart, is_initialized = restarts.may_restart_all(pod), old.get("Initialized", {}).get("status") == "True"
    if may_restart and is_initialized:
        incomplete = []  # as in Kubernetes, restarted init containers do not reset the condition
    unready = _unready_names(pod, state)
    containers = _build_condition("ContainersReady", "ContainersNotReady", "containers with unready status", unready)
    initialized = _build_condition(
        "Initialized", "ContainersNotInitialized", "containers with incomplete status", incomplete
    )
    if phase == "Succeeded":
        initialized = {"type": "Initialized", "status": "True", "reason": "PodCompleted"}
    if phase in podstate.ENDED:
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        containers = {"type": "ContainersReady", "status": "False", "reason": reason}
    stubs = [c.name for c in state.containers.values() if c.image_id.startswith(STUB_IMAGE)]
    return [
        {"type": "PodReadyToStartContainers", "status": "True" if state.has_sandbox else "False"},
        initialized,
        _ready_condition(pod, containers, old),
        containers,
        *([_restarting_all(state, phase)] if may_restart else []),
        *([_stub_condition(stubs)] if stubs else []),
        *_over_limit_condition(state),
    ]


def _restarting_all(state: PodState, phase: str) -> JSONObject:
    """Return the condition that is True while all containers are stopped for a restart."""
    condition: JSONObject = {"type": restarts.ALL_RESTARTING, "status": "False"}
    if phase in podstate.ENDED:
        return condition | {"reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    if not state.restarted_by:
        return condition
    message = f"container {state.restarted_by} exited with code {_exit_code(state.containers[state.restarted_by])}"
    return condition | {"status": "True", "reason": "RestartAllContainersStarted", "message": message}


def _unready_names(pod: JSONObject, state: PodState) -> list[str]:
    sidecars = [c for c in podspec.init_containers(pod) if podspec.is_sidecar(c, pod)]
    containers = [*sidecars, *podspec.regular_containers(pod)]
    return [c["name"] for c in containers if not is_ready(pod, c, state.containers[c["name"]], is_init=False)]


def _build_condition(kind: str, reason: str, message: str, offenders: list[str]) -> JSONObject:
    if not offenders:
        return {"type": kind, "status": "True"}
    return {"type": kind, "status": "False", "reason": reason, "message": f"{message}: [{' '.join(offenders)}]"}


def _ready_condition(pod: JSONObject, containers: JSONObject, old: dict[str, JSONObject]) -> JSONObject:
    """Return the `Ready` condition, based on the containers and the conditions of the readiness gates."""
    if containers["status"] != "True":
        return containers | {"type": "Ready"}
    gates = [gate["conditionType"] for gate in meta.spec(pod).get("readinessGates") or []]
    closed = [gate for gate in gates if old.get(gate, {}).get("status") != "True"]
    if not closed:
        return {"type": "Ready", "status": "True"}
    message = "; ".join(f'the status of pod readiness gate "{gate}" is not "True"' for gate in closed)
    return {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": message}


def _stub_condition(stubs: list[str]) -> JSONObject:
    message = f"replaced by the built-in stub server: {', '.join(stubs)}"
    return {"type": STUB_CONDITION, "status": "True", "reason": "ImageNotRunnable", "message": message}


def _over_limit_condition(state: PodState) -> list[JSONObject]:
    texts = [
        f"container {container.name} {container.excess}" for container in state.containers.values() if container.excess
    ]
    message = "; ".join(texts)
    return [{"type": OVER_LIMIT, "status": "True", "reason": "LimitsNotEnforced", "message": message}] if texts else []


def _with_time(condition: JSONObject, old: JSONObject, now: datetime) -> JSONObject:
    since = old.get("lastTransitionTime") if old.get("status") == condition["status"] else None
    return condition | {"lastTransitionTime": since or timestamps.render(now)}
