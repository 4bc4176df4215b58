"""Finds pods that were evicted because of their usage, preempted, or terminated with their node. Pure.

An evicted pod is replaced immediately. Therefore, three sources are read: the current pod, the record of the group's
recreation, and Warning events about previous pods with the same name. The kubelet's message contains the resource and
the limit.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from re import Match
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.terminations import REMEMBERED
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Finding, cause
from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import Person
from lwsctl.model.events.eventrecord import WarningEvent
from lwsctl.model.groups import Group, Rank
from lwsctl.model.health import Verdict
from lwsctl.views import recreations
from lwsctl.views.wording import duration

REASONS: Final[Mapping[str, str]] = {
    "Evicted": "the kubelet evicted it",
    "TerminationByKubelet": "the kubelet terminated it",
    "Preempted": "a pod with higher priority preempted it",
    "Preempting": "a pod with higher priority preempted it",
    "PreemptionByScheduler": "a pod with higher priority preempted it",
    "NodeShutdown": "its node shut down",
    "Terminated": "its node shut down",
    "UnexpectedAdmissionError": "its node rejected it",
    "NodeAffinity": "its node no longer has the required labels",
    "OutOfcpu": "its node had insufficient cpu",
    "OutOfmemory": "its node had insufficient memory",
}
"""Descriptions of the reasons in pods, in the `DisruptionTarget` condition and in events."""

OF_EVENTS: Final = ("Evicted", "Preempting")
"""Reasons of the Warning events that the kubelet emits when it evicts a pod."""

RECORDED: Final = re.compile(r"deleted: (?P<reason>\w{1,60})(?:: (?P<message>.*))?")
"""The description in a recreation record of a pod that another component terminated (`core.restarts.failure`)."""

REMEDIES: Final = (
    (
        r"(?i)Container (?P<container>\S+) exceeded its local ephemeral storage limit \"?(?P<limit>[^\s\"]+)",
        "reduce the files and logs of container {container} below {limit}, or increase limits.ephemeral-storage in the template of {name}",
    ),
    (
        r"(?i)ephemeral local storage usage exceeds the total limit of containers (?P<limit>[^\s.]+)",
        "reduce files, logs and emptyDir volumes below {limit}, or increase limits.ephemeral-storage in the template of {name}",
    ),
    (
        r"(?i)EmptyDir volume \"(?P<volume>[^\"]+)\" exceeds the limit \"?(?P<limit>[^\s\"]+)",
        "reduce the data in volume {volume} below {limit}, or increase its sizeLimit in the template of {name}",
    ),
    (
        r"(?i)low on resource: (?P<resource>[\w/-]+(?:\.[\w/-]+)*).*?was using (?P<used>\S+), request is (?P<request>\w+)",
        "request more {resource} in the template of {name} (the pod used {used}, and requested {request}), or free {resource} on the node",
    ),
    (
        r"(?i)low on resource: (?P<resource>[\w/-]+(?:\.[\w/-]+)*)",
        "request {resource} in the template of {name}, or free {resource} on the node",
    ),
    (
        r"(?i)node had condition: \[(?P<condition>\w+)\]",
        "free resources on the node ({condition}): remove unused images, logs or pods",
    ),
    (r"(?i)preempt", "set priorityClassName to a class with a higher priority in the template of {name}, or add nodes"),
    (r"(?i)shutdown", "wait until the group has started on other nodes"),
)
"""The remedies for patterns in the kubelet's message."""

COMPILED: Final = tuple((re.compile(pattern), step) for pattern, step in REMEDIES)
READ: Final = 1000
"""The maximum number of message characters to read."""


class Eviction(Struct, frozen=True, kw_only=True):
    """A pod that another component terminated.

    Contains the reason, the message, its age, and whether this is repeated.
    """

    rank: Rank
    reason: str
    message: str
    source: str
    ago: timedelta | None = None
    is_repeated: bool = True


@cause(
    code="LWS-E054",
    title="a pod was evicted or preempted",
    meaning="A pod exceeded a limit or was preempted, or its node ran low on resources or was shut down.",
    person=Person.AUTHOR,
    remedy="Increase the request or limit that the message shows. Alternatively, assign a priority class to the pods, or check the node.",
    verdict=Verdict.CRASHING,
)
def find_evicted_pod(observed: Observed) -> Finding | None:
    """Find a pod that its node or the scheduler terminated, even if it has been replaced."""
    are_all_ready = all(group.is_ready for group in observed.view.groups)
    for group in observed.view.groups:
        if are_all_ready or not group.is_ready:
            for eviction in (
                *_current_evictions(observed, group),
                *_recorded_evictions(observed, group),
                *_previous_evictions(observed, group),
            ):
                return _finding(observed, eviction)
    return None


def _current_evictions(observed: Observed, group: Group) -> Iterator[Eviction]:
    """Yield evicted pods that still exist. The kubelet emits its event before it stops the containers."""
    for rank in _selected_ranks(observed, group):
        status = meta.status(rank.object or {})
        reason = str(status.get("reason") or "")
        if ranks.is_placed(rank) and status.get("phase") == "Failed" and reason in REASONS:
            source = f"{rank.pod}: phase Failed, reason {reason}, node {rank.node}"
            message = ranks.quote_message(str(status.get("message") or reason))
            yield Eviction(rank=rank, reason=reason, message=message, source=source)
        elif not rank.is_ready:
            for event in _eviction_events(observed, rank):
                if event.uid == rank.uid:
                    source = f"event {event.reason} of pod {rank.pod}, {duration(observed.now - event.last)} ago"
                    yield Eviction(rank=rank, reason=event.reason, message=event.message, source=source)


def _eviction_events(observed: Observed, rank: Rank) -> Iterator[WarningEvent]:
    """Yield the recent eviction events of the pods with this name."""
    for event in observed.warnings.about(observed.view.namespace, "Pod", rank.pod):
        if event.reason in OF_EVENTS and observed.now - event.last < REMEMBERED:
            yield event


def _recorded_evictions(observed: Observed, group: Group) -> Iterator[Eviction]:
    """Yield the eviction that caused a group's recreation, unless the group is ready or the record is old."""
    recreation = group.recreations
    if recreation is None or group.has_recovered(observed.now) or any(rank.deaths for rank in group.ranks):
        return
    match = RECORDED.fullmatch(recreation.failure)
    member = next((rank for rank in _selected_ranks(observed, group) if rank.index == recreation.failed_rank), None)
    since = observed.now - recreation.due
    if match is None or match["reason"] not in REASONS or since >= REMEMBERED or member is None:
        return
    yield Eviction(
        rank=member,
        reason=match["reason"],
        message=match["message"] or match["reason"],
        source=f"group {group.name} {recreations.sentence(recreation, observed.now)}",
        is_repeated=recreation.count > 1,
    )


def _previous_evictions(observed: Observed, group: Group) -> Iterator[Eviction]:
    """Yield the latest event about a previous pod, unless the new pod has also failed."""
    if any(rank.deaths for rank in group.ranks):
        return
    evictions = [
        (event, rank)
        for rank in _selected_ranks(observed, group)
        for event in _eviction_events(observed, rank)
        if event.uid != rank.uid
    ]
    if not evictions:
        return
    event, rank = max(evictions, key=lambda pair: pair[0].last)
    ago = observed.now - event.last
    yield Eviction(
        rank=rank,
        reason=event.reason,
        message=event.message,
        source=f"event {event.reason} of a previous pod {rank.pod}, {duration(ago)} ago",
        ago=ago,
        is_repeated=len({event.uid for event, _ in evictions}) > 1,
    )


def _selected_ranks(observed: Observed, group: Group) -> list[Rank]:
    return [rank for rank in group.ranks if observed.rank in (None, rank.index)]


def _finding(observed: Observed, eviction: Eviction) -> Finding:
    ago = f" {duration(eviction.ago)} ago" if eviction.ago is not None else ""
    again = "" if eviction.is_repeated else "; its group restarts"
    rank = eviction.rank
    match = next(((hit, step) for pattern, step in COMPILED if (hit := pattern.search(eviction.message[:READ]))), None)
    return Finding(
        subject=ranks.pod_subject(rank),
        sentence=f"pod {rank.pod} was terminated{ago}, because {REASONS[eviction.reason]}: {ranks.quote_message(eviction.message)}{again}",
        evidence=(ranks.quote_message(eviction.source),),
        steps=(
            *((_remedy(observed, *match),) if match else ()),
            f"{observed.commands.lws} nodes {rank.node}".rstrip(),
        ),
        verdict=None if eviction.is_repeated else Verdict.PROGRESSING,
    )


def _remedy(observed: Observed, match: Match[str], step: str) -> str:
    return step.format(**match.groupdict(), name=observed.view.name)
