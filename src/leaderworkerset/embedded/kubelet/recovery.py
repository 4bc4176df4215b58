"""What a pod's state is after the whole cluster was restarted: from what the API remembers of it. Pure.

A pod that was running has no processes any more. Its containers start afresh, with the pod's identity and its
restart counts unchanged, because a restart of the machine is no failure of a container; `lastState` tells of it.
What had ended for good stays ended; a container that must never run twice (`restartPolicy: Never`) has failed.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from leaderworkerset.api import meta
from leaderworkerset.api.meta import JSONObject
from leaderworkerset.embedded.kubelet import podspec, restarts
from leaderworkerset.embedded.kubelet.state import ContainerState, Phase, PodState, Termination, Waiting, initial

CLUSTER_RESTARTED: Final = "ClusterRestarted"
KILLED: Final = 137
SCHEME: Final = "process://"


def recover(pod: JSONObject, now: datetime) -> PodState:
    """Return the state to go on from; of a pod never seen before, the initial one."""
    status = meta.status(pod)
    state = replace(initial(pod, now), start_time=_moment(status.get("startTime")) or now)
    over = podspec.is_terminal(pod)
    for container in podspec.all_containers(pod):
        found = _status_of(status, container["name"])
        if found is not None:
            state = state.with_container(_recover(pod, container, found, now, over=over))
    if over and status.get("reason"):
        state = replace(state, failure=Waiting(status["reason"], str(status.get("message") or "")))
    return replace(state, ip=str(status.get("podIP") or "") if over else "")


def was_cut_off(container: ContainerState) -> bool:
    """Tell whether the container was running when the cluster ended, and starts again."""
    return container.last is not None and container.last.reason == CLUSTER_RESTARTED and not container.termination


def _status_of(status: JSONObject, name: str) -> JSONObject | None:
    found = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    return next((entry for entry in found if entry["name"] == name), None)


def _recover(pod: JSONObject, container: JSONObject, found: JSONObject, now: datetime, *, over: bool) -> ContainerState:
    state: JSONObject = found.get("state") or {}
    blank = ContainerState(
        name=container["name"],
        restarts=int(found.get("restartCount") or 0),
        last=_termination((found.get("lastState") or {}).get("terminated")),
        image_id=str(found.get("imageID") or "") if over else "",
    )
    ended = _termination(state.get("terminated"))
    if state.get("running") is not None:
        ended = _cut_off(found, state["running"], now)
    if ended is None:
        return blank
    is_init = container in podspec.init_containers(pod)
    stays = not is_init and not restarts.starts_again(pod, container, ended.exit_code)
    if over or stays or (is_init and restarts.policy(pod, container) == "Never" and ended.exit_code != 0):
        return replace(blank, phase=Phase.TERMINATED, termination=ended, passed=is_init and ended.exit_code == 0)
    return replace(blank, last=ended)


def _cut_off(found: JSONObject, running: JSONObject, now: datetime) -> Termination:
    return Termination(
        exit_code=KILLED,
        reason=CLUSTER_RESTARTED,
        message="The cluster was restarted; the container starts afresh.",
        started_at=_moment(running.get("startedAt")),
        finished_at=now,
        container_id=str(found.get("containerID") or "").removeprefix(SCHEME),
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
