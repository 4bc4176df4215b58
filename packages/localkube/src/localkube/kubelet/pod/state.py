"""Defines the state of a pod in the kubelet as values with transitions between them, without I/O.

The states of a container: waiting → starting → running → stopping → terminated → (waiting) → starting …
`attempts` counts the starts since the sandbox was created; `restarts` is the count in the API, which is kept over a
restart of the whole cluster and not increased by it.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podstate import ALL_RESTARTED
from localkube.kubelet.processes.runner import Exit
from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.backoff import Backoff
from localkube.kubelet.spec.probes import Kind

CRASH_LOOP: Final = "CrashLoopBackOff"

KILLED: Final = 137
"""The exit code of a process that was killed with SIGKILL."""

START_ERROR_CODE: Final = 128
"""The exit code of a container whose process could not be started, as in container runtimes."""


class Phase(StrEnum):
    """The state of a container in this cycle."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    TERMINATED = "terminated"


Hook: TypeAlias = Literal["running", "done", ""]

LIVE: Final = (Phase.STARTING, Phase.RUNNING, Phase.STOPPING)


class Waiting(Struct, frozen=True):
    """The reason why a container does not run yet."""

    reason: str
    message: str = ""


class Termination(Struct, frozen=True, kw_only=True):
    """The result of one run of a container."""

    exit_code: int
    reason: str
    finished_at: datetime
    started_at: datetime | None = None
    signal: int = 0
    message: str = ""
    container_id: str = ""


class ContainerState(Struct, frozen=True, kw_only=True):
    """The state of one container.

    With `has_passed_startup`, the next init container may start: it succeeded, or is a started sidecar.

    `hook` is the progress of the preStop hook of a stopping container; `""` means that the stop signal was sent.
    `is_killed` means that SIGKILL was sent. `excess` is the memory that the container uses above its limit, in words, if
    limits are not enforced. `image` is the image at the start. When the pod names another image, the
    container is `is_replaced`: stopped, and restarted whatever its restart policy is.
    """

    name: str
    phase: Phase = Phase.WAITING
    waiting: Waiting | None = None
    not_before: datetime | None = None
    container_id: str = ""
    image: str = ""
    image_id: str = ""
    is_replaced: bool = False
    started_at: datetime | None = None
    is_started: bool = False
    is_ready: bool = False
    has_passed_startup: bool = False
    unhealthy: str = ""
    excess: str = ""
    hook: Hook = ""
    kill_at: datetime | None = None
    is_killed: bool = False
    attempts: int = 0
    restarts: int = 0
    termination: Termination | None = None
    last: Termination | None = None
    backoff: Backoff = field(default_factory=Backoff)

    @property
    def is_live(self) -> bool:
        """Return whether a process exists or is being started."""
        return self.phase in LIVE

    @property
    def is_start_rejected(self) -> bool:
        """Return whether the container waits because its start could not be attempted."""
        back_off = (CRASH_LOOP, ALL_RESTARTED)
        return self.phase is Phase.WAITING and self.waiting is not None and self.waiting.reason not in back_off


class PodState(Struct, frozen=True, kw_only=True):
    """The state of one pod. `kill_at` is set when it is being stopped, and `failure` when it has failed.

    `problem` is why volumes or sandbox cannot be created yet. `is_deleted` means that its API object was deleted. `clock_shift` is
    the time by which the wall clock was set since `start_time`. `restarted_by` is the container whose exit restarts all
    containers in place; empty if there is none.
    """

    containers: Mapping[str, ContainerState]
    has_volumes: bool = False
    has_sandbox: bool = False
    ip: str = ""
    start_time: datetime
    clock_shift: timedelta = timedelta()
    not_before: datetime | None = None
    problem: str = ""
    failure: Waiting | None = None
    kill_at: datetime | None = None
    is_deleted: bool = False
    restarted_by: str = ""

    def container_states(self, containers: list[JSONObject]) -> Iterator[ContainerState]:
        """Yield the states of the given containers of the pod."""
        return (self.containers[container["name"]] for container in containers)

    def with_container(self, container: ContainerState) -> "PodState":
        """Return the state with the new state of this container."""
        return replace(self, containers={**self.containers, container.name: container})

    def stopping_by(self, kill_at: datetime) -> "PodState":
        """Return the state of a pod that must terminate by `kill_at`. Stopping containers are not extended."""
        containers = {
            name: replace(container, kill_at=min(container.kill_at, kill_at)) if container.kill_at else container
            for name, container in self.containers.items()
        }
        return replace(self, kill_at=kill_at, containers=containers)

    def after_jump(self, jump: timedelta) -> "PodState":
        """Return the state with deadlines shifted by `jump`, after the wall clock was set."""
        containers = {name: _shift_times(container, jump) for name, container in self.containers.items()}
        not_before, kill_at = _shift(self.not_before, jump), _shift(self.kill_at, jump)
        return replace(
            self, containers=containers, not_before=not_before, kill_at=kill_at, clock_shift=self.clock_shift + jump
        )

    def retry_now(self) -> "PodState":
        """Return the state of a pod whose rejected starts are retried immediately. The crash backoff continues."""
        containers = {
            name: replace(container, not_before=None) if container.is_start_rejected else container
            for name, container in self.containers.items()
        }
        return replace(self, containers=containers, not_before=None)


def initial_state(pod: JSONObject, now: datetime) -> PodState:
    """Return the initial state of a pod."""
    names = [container["name"] for container in podspec.all_containers(pod)]
    return PodState(containers={name: ContainerState(name=name) for name in names}, start_time=now)


def record_start(container: ContainerState) -> ContainerState:
    """Record the beginning of a start. The waiting reason is shown until the process exists."""
    return replace(container, phase=Phase.STARTING, container_id="", not_before=None)


def record_rejected_start(container: ContainerState, waiting: Waiting, not_before: datetime) -> ContainerState:
    """Record that a start was not attempted, with the reason `waiting`."""
    return replace(container, phase=Phase.WAITING, waiting=waiting, not_before=not_before)


def record_launch(
    container: ContainerState, container_id: str, image_id: str, now: datetime, image: str = ""
) -> ContainerState:
    """Record that the process exists. The container is running only after its postStart hook (`record_running`)."""
    return replace(
        _count_restart(container, now),
        container_id=container_id,
        image=image,
        is_replaced=False,
        image_id=image_id,
        started_at=now,
        is_started=False,
        is_ready=False,
        unhealthy="",
        hook="",
        kill_at=None,
        is_killed=False,
    )


def record_running(container: ContainerState, probes: frozenset[str], *, is_sidecar: bool) -> ContainerState:
    """Record that the process runs and its postStart hook has succeeded. `probes` contains its kinds of probes."""
    started = "startup" not in probes
    ready = started and "readiness" not in probes
    passed = container.has_passed_startup or (is_sidecar and started)
    return replace(container, phase=Phase.RUNNING, is_started=started, is_ready=ready, has_passed_startup=passed)


def record_probe(
    container: ContainerState, kind: Kind, probes: frozenset[str], *, good: bool, is_sidecar: bool
) -> ContainerState:
    """Record the result of a probe."""
    match kind:
        case "readiness":
            return replace(container, is_ready=good)
        case "startup" if good:
            return record_running(container, probes - {"startup"}, is_sidecar=is_sidecar)
        case _:
            return container if good else replace(container, unhealthy=f"{kind} probe")


def record_start_failure(container: ContainerState, message: str, now: datetime) -> ContainerState:
    """Record that the process could not be started."""
    ended = Termination(exit_code=START_ERROR_CODE, reason="StartError", message=message, finished_at=now)
    return replace(_count_restart(container, now), phase=Phase.TERMINATED, termination=ended, started_at=None)


def record_stop(container: ContainerState, kill_at: datetime, hook: Hook, *, replaced: bool = False) -> ContainerState:
    """Record that the container is stopping and will be killed at `kill_at`. A planned replacement is retained."""
    replaced = replaced or container.is_replaced
    return replace(container, phase=Phase.STOPPING, kill_at=kill_at, hook=hook, is_replaced=replaced)


def record_exit(
    container: ContainerState, ending: Exit, message: str, now: datetime, reason: str = ""
) -> ContainerState:
    """Record that the process has exited. `reason` is set if the kubelet killed the process."""
    termination = Termination(
        exit_code=ending.code,
        signal=ending.signal,
        reason=reason or ("Completed" if ending.code == 0 else "Error"),
        message=message,
        started_at=container.started_at,
        finished_at=now,
        container_id=container.container_id,
    )
    return replace(
        container,
        phase=Phase.TERMINATED,
        termination=termination,
        is_started=False,
        is_ready=False,
        kill_at=None,
        excess="",
        has_passed_startup=container.has_passed_startup or ending.code == 0,
    )


def record_delay(container: ContainerState, waiting: Waiting, until: datetime) -> ContainerState:
    """Record that the container terminated and waits for its next start."""
    return replace(
        container,
        phase=Phase.WAITING,
        waiting=waiting,
        not_before=until,
        last=container.termination or container.last,
        termination=None,
    )


def record_restart_of_all(pod: PodState, now: datetime) -> PodState:
    """Record that all containers have exited, and restart after the backoff of the causing container."""
    source = pod.containers[pod.restarted_by]
    ended = source.termination or source.last
    finished = ended.finished_at if ended else now
    until = finished + source.backoff.wait(finished)
    code = f" with code {ended.exit_code}" if ended else ""
    message = f"all containers of the pod restart, because {source.name} exited{code}"
    containers = {name: _restarted_state(container, message, until, now) for name, container in pod.containers.items()}
    backoff = source.backoff.after_restart(finished, now)
    containers[source.name] = replace(containers[source.name], backoff=backoff)
    return replace(pod, containers=containers, restarted_by="")


def _restarted_state(container: ContainerState, message: str, until: datetime, now: datetime) -> ContainerState:
    """Return the state of a container that has not run since the last restart of the pod."""
    has_run = container.phase is not Phase.WAITING
    last = Termination(
        exit_code=KILLED,
        reason=ALL_RESTARTED,
        message=message,
        started_at=container.started_at,
        finished_at=now,
        container_id=container.container_id,
    )
    return ContainerState(
        name=container.name,
        waiting=Waiting(ALL_RESTARTED, message),
        not_before=until,
        image_id=container.image_id,
        restarts=container.restarts + has_run,
        last=last if has_run else container.last,
        backoff=container.backoff,
    )


def _shift_times(container: ContainerState, jump: timedelta) -> ContainerState:
    backoff = container.backoff._replace(increased_at=_shift(container.backoff.increased_at, jump))
    not_before, kill_at = _shift(container.not_before, jump), _shift(container.kill_at, jump)
    return replace(container, not_before=not_before, kill_at=kill_at, backoff=backoff)


def _shift(moment: datetime | None, jump: timedelta) -> datetime | None:
    return None if moment is None else moment + jump


def _count_restart(container: ContainerState, now: datetime) -> ContainerState:
    previous = container.termination or container.last
    again = container.attempts > 0 and previous is not None
    return replace(
        container,
        attempts=container.attempts + 1,
        restarts=container.restarts + (1 if again else 0),
        backoff=container.backoff.after_restart(previous.finished_at, now) if again and previous else container.backoff,
        last=previous,
        termination=None,
        waiting=None,
    )
