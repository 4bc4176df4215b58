"""Determines the next steps of a pod from its spec, the states of its containers, and the time.

The driver (`podworker.py`) performs the steps, which changes the state, and calls it again until no steps are left;
then it waits for a change or for `wake_at`. Pure; mirrors Kubernetes' pod worker:

1. volumes, then the sandbox (the pod's network and names).
2. init containers one after the other (sidecars stay, and must have started before the next container).
3. regular containers, one start at a time (a start lasts until the postStart hook has ended).
4. containers that ended are restarted according to the policy, after their back-off.
5. a pod that is deleted, failed or completed is terminated: regular containers first, then sidecars in reverse order,
   each by preStop hook, SIGTERM and, when its time is over, SIGKILL. Then the sandbox is removed, then the API object.
6. if a rule on an exit code requires it, all containers are killed, and the pod begins again at 2, in its sandbox.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec import Struct

from kuberuntime.objects import duration, meta
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod.state import ContainerState, Phase, PodState, Termination
from localkube.kubelet.spec import backoff, podspec, restarts

SHORTEST_GRACE: Final = timedelta(seconds=2)
"""The minimum time between SIGTERM and SIGKILL, even if hooks or other containers used the whole grace period."""


class PrepareVolumes(Struct, frozen=True):
    """Prepare the pod's volumes."""


class CreateSandbox(Struct, frozen=True):
    """Create the namespaces and the network of the pod."""


class Start(Struct, frozen=True):
    """Start a container."""

    name: str


class Delay(Struct, frozen=True):
    """Delay the restart of a terminated container."""

    name: str
    until: datetime
    wait: timedelta


class Stop(Struct, frozen=True):
    """Stop a container: run its preStop hook if it has one, or send its stop signal.

    A container that is `is_replaced`, because the pod names another image, is restarted regardless of its restart policy.
    """

    name: str
    kill_at: datetime
    message: str
    is_replaced: bool = False


class Terminate(Struct, frozen=True):
    """Abort the preStop hook and send the stop signal."""

    name: str
    kill_at: datetime


class Kill(Struct, frozen=True):
    """Send SIGKILL to all remaining processes of a container."""

    name: str


class RestartAll(Struct, frozen=True):
    """Stop all containers because one container exited."""

    name: str


class StartOver(Struct, frozen=True):
    """Reset the runs of all exited containers, so that the pod restarts in place."""


class Fail(Struct, frozen=True):
    """Mark the whole pod as failed."""

    reason: str
    message: str


class StopPod(Struct, frozen=True):
    """Record the time at which the pod is killed."""

    kill_at: datetime


class RemoveSandbox(Struct, frozen=True):
    """Remove the namespaces and network of the pod, with all remaining processes."""


class Finish(Struct, frozen=True):
    """Complete the termination by deleting the API object, if it still exists."""


Step: TypeAlias = (
    PrepareVolumes
    | CreateSandbox
    | Start
    | Delay
    | Stop
    | Terminate
    | Kill
    | RestartAll
    | StartOver
    | Fail
    | StopPod
    | RemoveSandbox
    | Finish
)


class Decision(Struct, frozen=True):
    """The steps in order, and the time of the next decision if nothing changes before then."""

    steps: tuple[Step, ...] = ()
    wake_at: datetime | None = None


def next_steps(pod: JSONObject, state: PodState, now: datetime) -> Decision:
    """Determine the current steps, and the time of the next reconciliation."""
    if state.is_deleted:
        return Decision((RemoveSandbox(),)) if state.has_sandbox else Decision((Finish(),))
    if meta.is_deleting(pod) or state.failure or is_settled(pod, state):
        return _stop_pod(pod, state, now)
    deadline = active_deadline(pod, state)
    if deadline is not None and now >= deadline:
        return Decision((Fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),))
    if (restart := _restart_all(pod, state)) is not None:
        return restart
    if not state.has_sandbox:
        return _prepare_pod(state, now)
    return _combine([_advance_pod(pod, state, now), Decision(wake_at=deadline)])


def active_deadline(pod: JSONObject, state: PodState) -> datetime | None:
    """Return the time at which `activeDeadlineSeconds` expires."""
    seconds = meta.spec(pod).get("activeDeadlineSeconds")
    return None if seconds is None else state.start_time + state.clock_shift + duration.from_seconds(seconds)


def is_settled(pod: JSONObject, state: PodState) -> bool:
    """Return whether all regular containers terminated, or an init container failed permanently."""
    if state.restarted_by:
        return False
    initial, regular = (
        [(container, state.containers[container["name"]]) for container in containers]
        for containers in (podspec.init_containers(pod), podspec.regular_containers(pod))
    )
    if any(
        not current.has_passed_startup and _has_ended_permanently(pod, container, current)
        for container, current in initial
    ):
        return True
    return all(_has_ended_permanently(pod, container, current) for container, current in regular)


def _restart_all(pod: JSONObject, state: PodState) -> Decision | None:
    """Stop all containers if the exit of a container requires it. Otherwise, return None."""
    if state.restarted_by:
        return _kill_all(state)
    for container in podspec.all_containers(pod):
        ended = state.containers[container["name"]].termination
        if ended is not None and restarts.requires_restart_of_all(container, ended.exit_code):
            return Decision((RestartAll(container["name"]),))
    return None


def _kill_all(state: PodState) -> Decision:
    """Kill all running containers, without hooks and grace period.

    A container that is being started is killed right after.
    """
    live = [container for container in state.containers.values() if container.is_live]
    if not live:
        return Decision((StartOver(),))
    return Decision(tuple(Kill(current.name) for current in live if current.container_id and not current.is_killed))


def _has_ended_permanently(pod: JSONObject, container: JSONObject, current: ContainerState) -> bool:
    ended = current.termination
    return (
        current.phase is Phase.TERMINATED
        and ended is not None
        and not current.is_replaced
        and not restarts.holds_completed(pod)
        and not restarts.is_restarted(pod, container, ended.exit_code)
    )


def _combine(decisions: Iterable[Decision]) -> Decision:
    """Combine decisions. Include only the first start, because containers start one at a time."""
    steps: list[Step] = []
    wake_ats: list[datetime] = []
    for decision in decisions:
        wake_ats += [decision.wake_at] if decision.wake_at else []
        starts = any(isinstance(step, Start) for step in steps)
        steps += [step for step in decision.steps if not (starts and isinstance(step, Start))]
    return Decision(tuple(steps), min(wake_ats, default=None))


def _prepare_pod(state: PodState, now: datetime) -> Decision:
    if state.not_before is not None and backoff.is_before(state.not_before, now):
        return Decision(wake_at=state.not_before)
    return Decision((CreateSandbox() if state.has_volumes else PrepareVolumes(),))


def _advance_pod(pod: JSONObject, state: PodState, now: datetime) -> Decision:
    startable = _startable(pod, state)
    combined = _combine(
        _decide_container(pod, container, state.containers[container["name"]], now) for container in startable
    )
    if not any(current.phase is Phase.STARTING for current in state.containers.values()):
        return combined
    return Decision(tuple(step for step in combined.steps if not isinstance(step, Start)), combined.wake_at)


def _startable(pod: JSONObject, state: PodState) -> Iterable[JSONObject]:
    """Yield the containers that can run: started sidecars and the current init container, or all containers."""
    for container in podspec.init_containers(pod):
        current = state.containers[container["name"]]
        if podspec.is_sidecar(container, pod) or not current.has_passed_startup:
            yield container
        if not current.has_passed_startup:
            return
    yield from podspec.regular_containers(pod)


def _decide_container(pod: JSONObject, container: JSONObject, current: ContainerState, now: datetime) -> Decision:
    """Determine whether to start or restart one container, according to its policy."""
    match current.phase:
        case Phase.WAITING if current.not_before is not None and backoff.is_before(current.not_before, now):
            return Decision(wake_at=current.not_before)
        case Phase.WAITING:
            return Decision((Start(current.name),))
        case Phase.RUNNING:
            return _restart(pod, container, current, now)
        case Phase.STOPPING:
            return _continue_stopping(pod, current, now)
        case Phase.TERMINATED if current.termination is not None:
            return _decide_restart(pod, container, current.termination, now, current)
        case _:
            return Decision()


def _restart(pod: JSONObject, container: JSONObject, current: ContainerState, now: datetime) -> Decision:
    """Stop a running container whose probe failed or whose image changed, with the messages of Kubernetes."""
    if current.unhealthy:
        grace = duration.from_seconds(_probe_grace(pod, container, current.unhealthy))
        message = f"Container {current.name} failed {current.unhealthy}, will be restarted"
        return Decision((Stop(current.name, now + grace, message),))
    if not _is_redefined(pod, container, current):
        return Decision()
    grace = duration.from_seconds(podspec.grace_period(pod))
    message = f"Container {current.name} definition changed, will be restarted"
    return Decision((Stop(current.name, now + grace, message, is_replaced=True),))


def _is_redefined(pod: JSONObject, container: JSONObject, current: ContainerState) -> bool:
    """Return whether the image in the pod differs from the image of the container. Init containers do not change."""
    may_change = podspec.is_sidecar(container, pod) or container not in podspec.init_containers(pod)
    return may_change and bool(current.image) and current.image != container.get("image")


def _probe_grace(pod: JSONObject, container: JSONObject, unhealthy: str) -> float:
    probe = container.get(f"{unhealthy.removesuffix(' probe')}Probe") or {}
    own = probe.get(podspec.GRACE_FIELD)
    return podspec.grace_period(pod) if own is None else float(own)


def _decide_restart(
    pod: JSONObject, container: JSONObject, termination: Termination, now: datetime, current: ContainerState
) -> Decision:
    if current.is_replaced:
        return Decision((Start(current.name),))
    if not restarts.is_restarted(pod, container, termination.exit_code):
        return Decision()
    wait = current.backoff.wait(termination.finished_at)
    until = termination.finished_at + wait
    return Decision((Delay(current.name, until, wait) if backoff.is_before(until, now) else Start(current.name),))


def _stop_pod(pod: JSONObject, state: PodState, now: datetime) -> Decision:
    kill_at = now + duration.from_seconds(podspec.grace_period(pod))
    if state.kill_at is None or kill_at < state.kill_at:
        return Decision((StopPod(kill_at),))
    targets = _stop_next(pod, state)
    if targets:
        return _combine(_stop(pod, target, state.kill_at, now) for target in targets)
    if state.has_sandbox:
        return Decision((RemoveSandbox(),))
    return Decision((Finish(),)) if meta.is_deleting(pod) else Decision()


def _stop_next(pod: JSONObject, state: PodState) -> list[ContainerState]:
    """Return the live containers to stop next: all except sidecars, or the last live sidecar."""
    sidecars = {container["name"] for container in podspec.init_containers(pod) if podspec.is_sidecar(container, pod)}
    live = [container for container in state.containers.values() if container.is_live]
    return [container for container in live if container.name not in sidecars] or live[-1:]


def _stop(pod: JSONObject, current: ContainerState, kill_at: datetime, now: datetime) -> Decision:
    match current.phase:
        case Phase.STARTING if not current.container_id:
            return Decision()  # the start completes soon, and then the container is stopped
        case Phase.STOPPING:
            return _continue_stopping(pod, current, now)
        case _:
            return Decision(
                (Stop(current.name, max(kill_at, now + _minimum_grace(pod)), f"Stopping container {current.name}"),)
            )


def _continue_stopping(pod: JSONObject, current: ContainerState, now: datetime) -> Decision:
    """Continue stopping a container with the hook, the stop signal, and SIGKILL after its grace period."""
    if current.is_killed or current.kill_at is None:
        return Decision()
    floor = _minimum_grace(pod)
    is_late = now >= current.kill_at
    if is_late and (current.hook == "" or not floor):
        return Decision((Kill(current.name),))
    if is_late or current.hook == "done":
        return Decision((Terminate(current.name, max(current.kill_at, now + floor)),))
    return Decision(wake_at=current.kill_at)


def _minimum_grace(pod: JSONObject) -> timedelta:
    return min(SHORTEST_GRACE, duration.from_seconds(podspec.grace_period(pod)))
