"""Tolerates in-place restarts of all containers of a pod (docs/adr/0027-restarts-of-all-containers.md).

The kubelet restarts all containers of a pod when a container exits with a code for which its rules have the action
`RestartAllContainers`. This is not a failure (R-POD-4) if the pod is ready again in time. An annotation of the pod
(`api/restartannotation.py`) records the number of such restarts, and since when the pod has not been ready.

Input: the pods of a group, the deadline, the time. Output: the notes to write, and the failure of a late pod or the
remaining time.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.duration import Range
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Event, Patch, concurrently, identified_patch
from leaderworkerset.api import labels, restartannotation
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.api.recreationrecord import Failure
from leaderworkerset.api.restartannotation import InPlaceRestarts
from leaderworkerset.core import decisionevents
from leaderworkerset.core.policies import failures
from leaderworkerset.core.policies.failures import NO_FAULT, Fault
from leaderworkerset.core.policies.policy import LiveGroup

DEADLINES: Final = Range(24)


def errors(lws: LeaderWorkerSet) -> Iterator[FieldError]:
    """Return the errors of the annotation. Invalid stored values are ignored."""
    text, where = (
        lws.metadata.annotations.get(labels.IN_PLACE_RESTARTS),
        f"metadata.annotations.{labels.IN_PLACE_RESTARTS}",
    )
    if text is None:
        return
    if DEADLINES.parse(text) is None:
        yield invalid(where, text, f"must be {DEADLINES}")
    if not lws.spec.leader_worker_template.restart_policy.recreates:
        yield invalid(where, text, "requires a restartPolicy that recreates groups. Remove this annotation")


def time_to_ready(annotations: Mapping[str, str]) -> timedelta | None:
    """Return the time limit for the pod to become ready, or None if the restart is a failure."""
    return DEADLINES.parse(annotations.get(labels.IN_PLACE_RESTARTS, ""))


def excuses(lws: LeaderWorkerSet | None, pod: JSONObject, container: JSONObject) -> bool:
    """Return whether the last restart of a container was a tolerated restart of all containers in the pod."""
    if not podstate.was_restarted_with_all(container):
        return False
    if lws is not None and time_to_ready(lws.metadata.annotations) is not None:
        return True
    return (container.get("restartCount") or 0) <= restartannotation.read(pod).restarts


def find_overdue_pod(group: LiveGroup) -> Fault:
    """Return the failure of the first overdue pod, or the pod annotations and the time until the next deadline."""
    annotations = meta.annotations(group.obj)
    deadline = time_to_ready(annotations) if labels.IN_PLACE_RESTARTS in annotations else None
    if deadline is None:
        return NO_FAULT
    return decide(group.obj, failures.current_pods(group), deadline, group.now)


def decide(obj: JSONObject, pods: Iterable[JSONObject], deadline: timedelta, now: datetime) -> Fault:
    """Evaluate the pods of a group that has no other failures."""
    patches: list[Patch] = []
    ends: list[tuple[datetime, JSONObject]] = []
    for pod in pods:
        known, note = restartannotation.read(pod), _current_restarts(pod, now)
        if note != known:
            news = (_restart_event(obj, pod, note, deadline),) if note.restarts > known.restarts else ()
            patches.append(_annotation_patch(pod, note, news))
        if note.started_at is not None:
            ends.append((note.started_at + deadline, pod))
    actions = concurrently(patches)
    if not ends:
        return Fault(actions=actions)
    end, pod = min(ends, key=lambda deadline_of_pod: deadline_of_pod[0])
    return (
        Fault(actions=actions, remaining_time=end - now)
        if end > now
        else Fault(failure=_timeout_failure(pod, deadline))
    )


def _current_restarts(pod: JSONObject, now: datetime) -> InPlaceRestarts:
    """Return the required pod annotation. A time in the future is from a different clock, and is replaced."""
    known = restartannotation.read(pod)
    restarts = max(known.restarts, _restarts(pod))
    if known.started_at is None and restarts == known.restarts:
        return known
    if podstate.stays_ready(pod):
        return InPlaceRestarts(restarts)
    return InPlaceRestarts(
        restarts, known.started_at if known.started_at is not None and known.started_at <= now else now
    )


def _restarts(pod: JSONObject) -> int:
    """Return the highest restart count of containers whose last restart was a restart of all containers."""
    counts = (
        status.get("restartCount") or 0
        for status in podstate.container_statuses(pod)
        if podstate.was_restarted_with_all(status)
    )
    return max(counts, default=0)


def _restart_event(obj: JSONObject, pod: JSONObject, note: InPlaceRestarts, deadline: timedelta) -> Event:
    limit = f". It must be ready within {_seconds(deadline)}" if note.started_at is not None else ""
    text = f"Pod {meta.name(pod)} restarted all its containers in place (restart {note.restarts}){limit}"
    return decisionevents.restarted_in_place(obj, text, pod)


def _annotation_patch(pod: JSONObject, note: InPlaceRestarts, news: tuple[Event, ...]) -> Patch:
    change = {"metadata": {"annotations": {labels.RESTARTED_IN_PLACE: str(note)}}}
    return identified_patch(PODS, pod, change, if_present=True, on_success=news)


def _timeout_failure(pod: JSONObject, deadline: timedelta) -> Failure:
    what = f"not ready {_seconds(deadline)} after it restarted all its containers in place"
    return Failure(pod=meta.name(pod), uid=meta.uid(pod), restarts=_restarts(pod), description=what)


def _seconds(length: timedelta) -> str:
    return f"{int(length.total_seconds())} s"
