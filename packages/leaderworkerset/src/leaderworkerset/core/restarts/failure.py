"""Describes a pod failure in one sentence for an event, with the restart and the last container message.

Input: a failed pod in its last observed state. Output: a value that identifies the failure by the pod's UID and its
restart count, for the record of a recreation. The quoted line comes from the pod's status: the termination message of
the container, which is the end of its log with `terminationMessagePolicy: FallbackToLogsOnError`.
"""

from collections.abc import Iterator
from typing import Final

from kuberuntime.objects import disruptiontarget, meta, podstate, terminations
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.recreationrecord import Failure

LONGEST_MESSAGE: Final = 400
"""The maximum number of characters of a quoted termination message. Events are limited to 1024 characters."""


DELETED: Final = "deleted"
"""The first word in the description of a deleted pod. The reason and message follow after colons."""


def describe(pod: JSONObject) -> Failure:
    """Return the failure of a restarted or deleted pod."""
    restarts = sum(container.get("restartCount") or 0 for container in podstate.container_statuses(pod))
    longest = max(_run_lengths(pod), default=None)
    return Failure(
        pod=meta.name(pod),
        uid=meta.uid(pod),
        restarts=restarts,
        description=_describe_component(pod),
        longest_run=longest,
    )


def _run_lengths(pod: JSONObject) -> Iterator[int]:
    """Yield the run times in seconds of restarted containers, and of containers in evicted pods.

    Times can be null.
    """
    was_evicted = meta.status(pod).get("phase") == "Failed" and bool(meta.status(pod).get("reason"))
    for container in podstate.container_statuses(pod):
        for state in ("lastState", "state"):
            run = (container.get(state) or {}).get("terminated") or {}
            length = terminations.run_duration(run)
            if length is not None and (container.get("restartCount") or was_evicted):
                yield max(int(length.total_seconds()), 0)


def parenthesize(what: str) -> str:
    """Return the description in parentheses.

    >>> parenthesize("main: exit code 1"), parenthesize("")
    (' (main: exit code 1)', '')
    """
    return f" ({what})" if what else ""


def _describe_component(pod: JSONObject) -> str:
    """Describe the component that terminated the pod or, if it is unknown, the terminated containers."""
    if disruption := _describe_disruption(pod):
        return disruption
    ended = next(_describe_last_runs(pod), None)
    if ended is not None:
        return ended
    return DELETED if meta.is_deleting(pod) else ""


def _describe_disruption(pod: JSONObject) -> str:
    """Return the reason and message of the kubelet, scheduler or other component that terminated the pod."""
    status, disruption = meta.status(pod), meta.find_condition(pod, disruptiontarget.TYPE) or {}
    if reason := status.get("reason"):
        text = " ".join(str(status.get("message") or "").split())[:LONGEST_MESSAGE]
    else:
        reason, text = disruption.get("reason") if disruption.get("status") == "True" else "", ""
    return ": ".join(filter(None, (DELETED, str(reason), text))) if reason else ""


def _describe_last_runs(pod: JSONObject) -> Iterator[str]:
    """Describe the last runs of restarted containers. Containers that exited by themselves are first."""
    for container in sorted(podstate.container_statuses(pod), key=podstate.was_restarted_with_all):
        states = (container.get("state") or {}, container.get("lastState") or {})
        terminated = next((state["terminated"] for state in states if state.get("terminated")), None)
        if terminated is not None and (container.get("restartCount") or 0) > 0:
            yield _describe_run(str(container.get("name", "")), terminated)


def _describe_run(name: str, terminated: JSONObject) -> str:
    code, reason = terminated.get("exitCode"), terminated.get("reason")
    text = f"{name}: exit code {code}" + (f", {reason}" if reason else "")
    quotation = podstate.quotation(terminated)
    return text + (quotation if len(quotation) <= LONGEST_MESSAGE else f"{quotation[:LONGEST_MESSAGE]}…")
