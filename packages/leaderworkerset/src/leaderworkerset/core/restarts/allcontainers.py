"""Restarts of all containers of a pod in place, where they are tolerated (docs/adr/0027-restarts-of-all-containers.md).

A kubelet does that when a container ends with an exit code for which its rules say `RestartAllContainers`. It is no failure
(R-POD-4) as long as the pod is ready again in time. How often a pod did so, and since when it has not been ready, is kept
in an annotation of the pod (`api/restartnotes.py`).

In: the pods of a group, the deadline, the time. Out: the notes to write, and the failure of a pod that is late, or the time left.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS
from kuberuntime.plan import Action, Event, Patch, identified_patch, together
from leaderworkerset.api import labels, restartnotes
from leaderworkerset.api.recreationrecord import Failure
from leaderworkerset.api.restartnotes import RestartNote
from leaderworkerset.core import decisionevents


class Toleration(Struct, frozen=True):
    """What follows for a group: the notes of its pods, the failure of the first that is late, the time to the next deadline."""

    actions: tuple[Action, ...] = ()
    late: Failure | None = None
    left: timedelta | None = None


def decide(obj: JSONObject, pods: Iterable[JSONObject], deadline: timedelta, now: datetime) -> Toleration:
    """Decide about the pods of a group, none of which failed otherwise."""
    patches: list[Patch] = []
    ends: list[tuple[datetime, JSONObject]] = []
    for pod in pods:
        known, note = restartnotes.read(pod), _note(pod, now)
        if note != known:
            news = (_news(obj, pod, note, deadline),) if note.restarts > known.restarts else ()
            patches.append(_write(pod, note, news))
        if note.since is not None:
            ends.append((note.since + deadline, pod))
    actions = together(patches)
    if not ends:
        return Toleration(actions)
    end, pod = min(ends, key=lambda one: one[0])
    return Toleration(actions, left=end - now) if end > now else Toleration(late=_late(pod, deadline))


def _note(pod: JSONObject, now: datetime) -> RestartNote:
    """Return the note that a pod shall have; a time that is still to come is by another clock, and is replaced."""
    known = restartnotes.read(pod)
    restarts = max(known.restarts, _restarts(pod))
    if known.since is None and restarts == known.restarts:
        return known
    if podstate.stays_ready(pod):
        return RestartNote(restarts)
    return RestartNote(restarts, known.since if known.since is not None and known.since <= now else now)


def _restarts(pod: JSONObject) -> int:
    """Return how often the containers of a pod were restarted, by those whose last restart was one of all of them."""
    counts = (
        one.get("restartCount") or 0 for one in podstate.container_statuses(pod) if podstate.restarted_with_all(one)
    )
    return max(counts, default=0)


def _news(obj: JSONObject, pod: JSONObject, note: RestartNote, deadline: timedelta) -> Event:
    limit = f"; it has {_seconds(deadline)} to be ready again" if note.since is not None else ""
    text = f"Pod {meta.name(pod)} restarted all its containers in place (number {note.restarts}){limit}"
    return decisionevents.restarted_in_place(obj, text, pod)


def _write(pod: JSONObject, note: RestartNote, news: tuple[Event, ...]) -> Patch:
    change = {"metadata": {"annotations": {labels.RESTARTED_IN_PLACE: str(note)}}}
    return identified_patch(PODS, pod, change, if_present=True, on_success=news)


def _late(pod: JSONObject, deadline: timedelta) -> Failure:
    what = f"not ready {_seconds(deadline)} after it restarted all its containers in place"
    return Failure(pod=meta.name(pod), uid=meta.uid(pod), restarts=_restarts(pod), what=what)


def _seconds(length: timedelta) -> str:
    return f"{int(length.total_seconds())} s"
