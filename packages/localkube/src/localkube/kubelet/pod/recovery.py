"""Restores the state of a pod from its API object after a restart of the cluster or node, without I/O.

A pod that was running has no processes any more. Its containers are started again, with the pod's identity and restart
counts unchanged, because a restart of the machine is not a failure of a container; `lastState` reports it. Containers
that had ended for good stay ended; a container that must never run twice (`restartPolicy: Never`) has failed.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.pod.state import KILLED, ContainerState, Phase, PodState, Termination, Waiting, initial_state
from localkube.kubelet.spec import podspec, restarts

SCHEME: Final = "process://"


class Interruption(Struct, frozen=True):
    """An event that terminated all processes, with its reason for the API and a sentence."""

    reason: str
    sentence: str


CLUSTER_RESTARTED: Final = Interruption("ClusterRestarted", "The cluster was restarted")
NODE_RESTARTED: Final = Interruption(
    "NodeRestarted", "All processes of the node terminated, and the node was restarted"
)


def recover(pod: JSONObject, now: datetime, interruption: Interruption = CLUSTER_RESTARTED) -> PodState:
    """Return the restored state, or the initial state if the pod is new."""
    status = meta.status(pod)
    started = _moment(status.get("startTime")) or now
    ahead = max(started - now, timedelta())  # the clock was ahead, so the pod counts as started now
    state = replace(initial_state(pod, now), start_time=started, clock_shift=-ahead)
    over = podstate.has_ended(pod)
    statuses = {container_status["name"]: container_status for container_status in podstate.container_statuses(pod)}
    for container in podspec.all_containers(pod):
        if (container_status := statuses.get(container["name"])) is not None:
            ended = _recover_termination(container_status, now, interruption)
            state = state.with_container(_recover(pod, container, container_status, ended, over=over))
    if not over and meta.is_condition_true(pod, restarts.ALL_RESTARTING):
        state = replace(state, restarted_by=_restart_cause(pod, state))
    if over and status.get("reason"):
        state = replace(state, failure=Waiting(status["reason"], str(status.get("message") or "")))
    return replace(state, ip=str(status.get("podIP") or "") if over else "")


def _restart_cause(pod: JSONObject, state: PodState) -> str:
    """Return the container whose exit caused the restart of all containers.

    Empty for a restart of the pod by another cause.
    """
    containers = podspec.all_containers(pod)
    for container in containers:
        last = state.containers[container["name"]].last
        if last is not None and restarts.requires_restart_of_all(container, last.exit_code):
            return str(container["name"])
    return str(containers[0]["name"])


def interrupted_containers(state: PodState, interruption: Interruption) -> list[str]:
    """Return the names of the containers that were running at the interruption and will be restarted."""
    return [
        name
        for name, container in state.containers.items()
        if container.last is not None and container.last.reason == interruption.reason and not container.termination
    ]


def _recover_termination(status: JSONObject, now: datetime, interruption: Interruption) -> Termination | None:
    """Return how the container terminated (by itself or by the interruption), or None if it did not run."""
    state: JSONObject = status.get("state") or {}
    if state.get("running") is not None:
        return _interrupted_termination(status, state["running"], now, interruption)
    return _termination(state.get("terminated"))


def _recover(
    pod: JSONObject, container: JSONObject, status: JSONObject, ended: Termination | None, *, over: bool
) -> ContainerState:
    blank = ContainerState(
        name=container["name"],
        restarts=int(status.get("restartCount") or 0),
        last=_termination((status.get("lastState") or {}).get("terminated")),
        image_id=str(status.get("imageID") or "") if over else "",
    )
    if ended is None:
        return blank
    is_init = container in podspec.init_containers(pod)
    stays = not is_init and not restarts.is_restarted(pod, container, ended.exit_code)
    if over or stays or (is_init and restarts.restart_policy(pod, container) == "Never" and ended.exit_code != 0):
        return replace(
            blank, phase=Phase.TERMINATED, termination=ended, has_passed_startup=is_init and ended.exit_code == 0
        )
    return replace(blank, last=ended)


def _interrupted_termination(
    status: JSONObject, running: JSONObject, now: datetime, interruption: Interruption
) -> Termination:
    return Termination(
        exit_code=KILLED,
        reason=interruption.reason,
        message=f"{interruption.sentence}. The container is restarted.",
        started_at=_moment(running.get("startedAt")),
        finished_at=now,
        container_id=str(status.get("containerID") or "").removeprefix(SCHEME),
    )


def _termination(entry: JSONObject | None) -> Termination | None:
    if entry is None:
        return None
    return Termination(
        exit_code=int(entry.get("exitCode") or 0),
        signal=int(entry.get("signal") or 0),
        reason=str(entry.get("reason") or ""),
        message=str(entry.get("message") or ""),
        started_at=_moment(entry.get("startedAt")),
        finished_at=_moment(entry.get("finishedAt")) or datetime.fromtimestamp(0, UTC),
        container_id=str(entry.get("containerID") or "").removeprefix(SCHEME),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
