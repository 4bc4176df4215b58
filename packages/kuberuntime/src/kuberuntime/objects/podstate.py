"""Summarizes the state of a pod as in the STATUS column of kubectl, and describes the reason in one sentence.

API server tables, commands and live views display the results.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import errorlines, meta, timestamps, untrustedtext
from kuberuntime.objects.meta import JSONObject

NODE_LOST = "NodeLost"

ENDING: Final = "ending"
"""The reason for an unready pod that is being deleted, unless the pod failed before."""

STOPPED: Final = frozenset({0, 130, 137, 143})
"""The exit codes of processes that a signal terminated, or that exited after handling a signal."""

ALL_RESTARTED: Final = "RestartingAllContainers"
"""The termination reason of a container that was stopped by a restart of all containers.

The action is `RestartAllContainers`.
"""

ENDED: Final = frozenset({"Succeeded", "Failed"})
"""The phases of a pod whose containers have terminated."""


def state(pod: JSONObject) -> str:
    """Return the most specific reason among the pod and container states, like kubectl's STATUS column.

    >>> state({"status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]}})
    'Running'
    """
    status = meta.status(pod)
    word = str(status.get("reason") or status.get("phase") or "Unknown")
    word = "SchedulingGated" if _is_gated(pod) else word
    initializing = _initialization(pod)
    if initializing is not None:
        word = initializing.word
    elif status.get("containerStatuses"):
        word = _container_status(pod, word)
    if not meta.is_deleting(pod):
        return word
    return "Unknown" if status.get("reason") == NODE_LOST else "Terminating"


def waiting_reason(pod: JSONObject) -> str:
    """Return the reason why the pod is waiting or failed as a sentence, or an empty string if it is ready."""
    if meta.is_condition_true(pod, "Ready"):
        return ""
    scheduled = meta.find_condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        return str(scheduled.get("message") or scheduled.get("reason") or "")
    ending = ENDING if meta.is_deleting(pod) else ""
    return next(_reasons(pod), str(meta.status(pod).get("message") or ending))


def has_ended(pod: JSONObject) -> bool:
    """Return whether all containers of the pod have terminated permanently."""
    return meta.status(pod).get("phase") in ENDED


def stays_ready(pod: JSONObject) -> bool:
    """Return whether the pod is ready and is not being deleted."""
    return meta.is_condition_true(pod, "Ready") and not meta.is_deleting(pod)


def restart_count(pod: JSONObject) -> int:
    """Count restarts like kubectl.

    During initialization, only init containers are counted. Afterwards, only containers and sidecars are counted.
    """
    status = meta.status(pod)
    initializing = _initialization(pod)
    if initializing is not None and not meta.is_condition_true(pod, "Initialized"):
        statuses = (status.get("initContainerStatuses") or [])[: initializing.index + 1]
    else:
        statuses = [*(status.get("containerStatuses") or []), *_sidecar_statuses(pod)]
    return sum(status.get("restartCount") or 0 for status in statuses)


def ready_containers(pod: JSONObject) -> tuple[int, int]:
    """Return the number of ready containers, and the number of all containers."""
    statuses = [*(meta.status(pod).get("containerStatuses") or []), *_sidecar_statuses(pod)]
    total = len(meta.spec(pod).get("containers") or []) + len(sidecars(pod))
    return sum(bool(status.get("ready")) for status in statuses), total


def _is_gated(pod: JSONObject) -> bool:
    condition = meta.find_condition(pod, "PodScheduled")
    return condition is not None and condition.get("reason") == "SchedulingGated"


def sidecars(pod: JSONObject) -> set[str]:
    """Return the names of the sidecar containers, which are init containers with `restartPolicy: Always`."""
    containers = meta.spec(pod).get("initContainers") or []
    return {container["name"] for container in containers if container.get("restartPolicy") == "Always"}


def _sidecar_statuses(pod: JSONObject) -> list[JSONObject]:
    statuses = meta.status(pod).get("initContainerStatuses")
    if not statuses:
        return []
    names = sidecars(pod)
    return [status for status in statuses if status.get("name") in names]


class _Initialization(Struct, frozen=True):
    """The index of the first incomplete init container, and the STATUS of the pod."""

    index: int
    word: str


def _initialization(pod: JSONObject) -> _Initialization | None:
    """Return the `Init:…` status while an init container has not completed. Otherwise return None."""
    statuses = meta.status(pod).get("initContainerStatuses")
    if not statuses:
        return None
    running_on = sidecars(pod)
    for index, status in enumerate(statuses):
        current = status.get("state") or {}
        ended = current.get("terminated")
        if (ended and ended.get("exitCode") == 0) or (status.get("name") in running_on and status.get("started")):
            continue
        if ended:
            return _Initialization(index, f"Init:{_describe_run(ended)}")
        waiting = (current.get("waiting") or {}).get("reason")
        if waiting and waiting != "PodInitializing":
            return _Initialization(index, f"Init:{waiting}")
        return _Initialization(index, f"Init:{index}/{len(meta.spec(pod).get('initContainers') or [])}")
    return None


def _container_status(pod: JSONObject, word: str) -> str:
    """Return the status of the first waiting or terminated container. If there is none, return `word`."""
    running = False
    for status in reversed(meta.status(pod)["containerStatuses"]):
        current = status.get("state") or {}
        waiting, ended = current.get("waiting") or {}, current.get("terminated")
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended:
            word = _describe_run(ended)
        elif status.get("ready") and "running" in current:
            running = True
    if word == "Completed" and running:
        return "Running" if meta.is_condition_true(pod, "Ready") else "NotReady"
    return word


def _describe_run(ended: JSONObject) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode')}"


def container_statuses(pod: JSONObject) -> list[JSONObject]:
    """Return the statuses of the containers of a pod, init containers first."""
    status = meta.status(pod)
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def was_restarted_with_all(status: JSONObject) -> bool:
    """Return whether the last restart of a container was part of an in-place restart of all containers.

    >>> was_restarted_with_all({"lastState": {"terminated": {"reason": "RestartingAllContainers", "exitCode": 137}}})
    True
    """
    last = (status.get("lastState") or {}).get("terminated") or {}
    return last.get("reason") == ALL_RESTARTED


def was_ended_by_deletion(pod: JSONObject, ended: JSONObject) -> bool:
    """Return whether a signal terminated a container run after the deletion of its pod was requested.

    Times are whole seconds. In the second of the request, only the exit code is conclusive.
    """
    requested, finished = deletion_request_time(pod), timestamps.read(str(ended.get("finishedAt") or ""))
    if requested is None or finished is None:
        return False
    is_signal = ended.get("exitCode") in STOPPED
    return finished > requested or (is_signal and finished == requested.replace(microsecond=0))


def deletion_request_time(pod: JSONObject) -> datetime | None:
    """Return the time at which the deletion of a pod was requested, or None if it is not terminating."""
    due = timestamps.read(str(meta.metadata(pod).get("deletionTimestamp") or ""))
    return due and due - timedelta(seconds=int(meta.metadata(pod).get("deletionGracePeriodSeconds") or 0))


def is_failure(ended: JSONObject) -> bool:
    """Return whether a run failed, and was not stopped by an in-place restart of all containers."""
    return bool(ended.get("exitCode")) and ended.get("reason") != ALL_RESTARTED


def _reasons(pod: JSONObject) -> Iterator[str]:
    """Yield the reasons for waiting or terminated containers, in order of importance."""
    statuses = container_statuses(pod)
    for container in statuses:
        waiting = (container.get("state") or {}).get("waiting") or {}
        died = (container.get("lastState") or {}).get("terminated") or {}
        if waiting.get("reason") == "CrashLoopBackOff" and died:
            next_start = "" if meta.is_deleting(pod) else "; waiting to be restarted"
            yield f"{container['name']}: {describe_termination(died)}{next_start}"
        elif waiting.get("message"):
            yield f"{container['name']}: {waiting['message']}"
    for container in statuses:
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode") and not was_ended_by_deletion(pod, ended):
            yield f"{container['name']}: {describe_termination(ended)}"
    unready = meta.find_condition(pod, "Ready") or {}
    if unready.get("message") and not meta.is_deleting(pod):
        yield str(unready["message"])


def last_lines(ended: JSONObject) -> list[str]:
    """Return the non-empty lines of a termination message, without colors and other control characters."""
    text = untrustedtext.clean(untrustedtext.shorten(str(ended.get("message") or "")))
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def quotation(ended: JSONObject) -> str:
    r"""Return the first error, and the last error if it differs, for the end of a message about an exit.

    Return an empty string if there is no message.

    >>> quotation({"message": "no such model\n"}), quotation({"message": "loaded shard 3\n"})
    (': no such model', ', last line: loaded shard 3')
    """
    return quote_errors(last_lines(ended))


def quote_errors(lines: Sequence[str]) -> str:
    """Return the first error in a log, and the last error if it differs, for the end of a message."""
    line, is_certain, last = errorlines.first_error(lines)
    if not is_certain:
        return line and f", last line: {line}"
    return f": {line}" + (f"; last error: {last}" if last else "")


def describe_termination(ended: JSONObject) -> str:
    r"""Describe a terminated container by the first error in its message, the reason and the exit code.

    A line without an error is described as the last line.

    >>> describe_termination({"message": "Traceback …\nKeyError: 'rank'\n", "reason": "Error", "exitCode": 1})
    "KeyError: 'rank' (Error, exit code 1)"
    >>> describe_termination({"reason": "OOMKilled", "exitCode": 137})
    'OOMKilled (exit code 137)'
    """
    (line, is_certain, _), reason = errorlines.first_error(last_lines(ended)), str(ended.get("reason") or "")
    code = f"exit code {ended.get('exitCode')}"
    if line:
        return f"{'' if is_certain else 'last line: '}{line} ({f'{reason}, {code}' if reason else code})"
    return f"{reason or 'ended'} ({code})"
