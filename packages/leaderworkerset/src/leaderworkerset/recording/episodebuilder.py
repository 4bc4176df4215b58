"""Builds an episode from pod states, the recreation record, logs, events and revisions. The functions are pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct, field

from kuberuntime.objects import errorlines, meta, podstate, terminations, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts import errorboundary, fieldchanges
from kuberuntime.texts.fieldchanges import FieldChange
from kuberuntime.texts.masking import Mask
from leaderworkerset.api import episode, groupname, kubeletkills, labels, recreationrecord
from leaderworkerset.api.episode import (
    Episode,
    EpisodeEvent,
    Outcome,
    RecordedContainer,
    RecordedRank,
    Revision,
    RunTermination,
)
from leaderworkerset.api.eventvalue import convert
from leaderworkerset.api.groupname import group_and_rank, parse_group_name
from leaderworkerset.api.kubeletkills import Kill
from leaderworkerset.api.recreationrecord import RECORDED, Recreation, RecreationState
from leaderworkerset.core.leaderworkerset import previousrevisions
from leaderworkerset.core.leaderworkerset.previousrevisions import revision_content
from leaderworkerset.core.leaderworkerset.revisions import UnreadableRevisionError
from leaderworkerset.core.restarts import failure

Logs: TypeAlias = Mapping[tuple[str, str], Sequence[str]]
"""The last log lines of each recorded run, oldest run first, by pod UID and container name."""

OUTCOMES: Final = {RecreationState.WAITING: Outcome.FAILED, RecreationState.EXHAUSTED: Outcome.EXHAUSTED}
"""The outcome for each state of the record. The default is a recreation."""


class GroupObservation(Struct, frozen=True, kw_only=True):
    """The observations of a failed group. The LeaderWorkerSet and the record might be missing."""

    pods: Sequence[JSONObject]
    now: datetime
    lws: JSONObject | None = None
    record: JSONObject | None = None
    logs: Logs = field(default_factory=dict)
    events: Sequence[JSONObject] = ()
    revisions: Sequence[JSONObject] = ()
    notes: tuple[str, ...] = ()


def build(traces: GroupObservation, mask: Mask) -> Episode:
    """Return the episode. Raise ValueError if none of the pods belongs to a group.

    A log, a pod or a revision that cannot be read is recorded with its error, and does not affect the rest.
    """
    member = next((pod for pod in traces.pods if group_and_rank(pod) is not None), None)
    if member is None:
        raise ValueError("no pod in the episode has group labels")
    ranks = tuple(sorted(_ranks(traces, mask), key=lambda rank_end: (rank_end.rank, rank_end.pod)))
    record = recreationrecord.read(traces.record)
    recorded_name = record.failure.pod if record else ""
    first, failed = errorboundary.attempt(partial(_first_failed, traces.pods, recorded_name), lambda _: (None, {}))
    is_recorded = record is not None and meta.name(failed) in ("", record.failure.pod)
    own_text = failure.describe(_with_log(failed, traces.logs)).description if failed else ""
    failure_text = (
        record.failure.description
        if record and is_recorded and not _is_same_termination(record.failure.description, own_text)
        else own_text
    )
    return Episode(
        namespace=meta.namespace(member),
        lws=meta.labels(member)[labels.NAME],
        group=str(parse_group_name(groupname.group_label(member))),
        outcome=OUTCOMES.get(record.state, Outcome.RECREATED) if record else Outcome.FAILED,
        time=timestamps.render(traces.now),
        first_rank=first,
        failed_pod=meta.name(failed) if failed else record.failure.pod if record else "",
        failure=mask.text(_describe_failure(failure_text, traces, failed, record)),
        recreations=record.count if record else 0,
        recreate_after=record.due_at.isoformat() if record else "",
        revision=errorboundary.attempt(partial(_revision, traces, mask), lambda _: None),
        ranks=ranks,
        events=tuple(_events(traces, mask)),
        notes=traces.notes,
        masked=mask.count,  # must be last, after all text is masked
    )


def _describe_failure(text: str, traces: GroupObservation, failed: JSONObject, record: Recreation | None) -> str:
    """Return the description of a failed container, including the reason if the kubelet killed it."""
    uid = meta.uid(failed) if failed else record.failure.uid if record else ""
    kill = kubeletkills.kill_of_failure(_kills(traces.events), uid, text)
    return f"{kill}; {text}" if kill else text


def _kills(events: Iterable[JSONObject]) -> Iterator[Kill]:
    for event in events:
        about, own = event.get("involvedObject") or {}, convert(event)
        if kill := kubeletkills.kill_from_event(str(about.get("uid") or ""), own.reason, own.message, own.last):
            yield kill


def _first_failed(pods: Sequence[JSONObject], recorded_name: str) -> tuple[int | None, JSONObject]:
    """Return the rank that failed first and its pod. If the rank is unknown, return None and the pod in the record.

    Runs that terminated because their group was recreated did not fail.
    """
    failures = [(meta.name(pod), end) for pod in pods for end in _failures(pod)]
    first_name = terminations.earliest_name(failures) if failures else recorded_name
    evicted = (meta.name(pod) for pod in pods if any(evictions(pod)))
    pod_name = first_name or recorded_name or next((name for name, _ in failures), next(evicted, ""))
    pod = next((candidate for candidate in pods if pod_name and meta.name(candidate) == pod_name), {})
    place = group_and_rank(pod) if first_name else None
    return (None if place is None else place[1]), pod


def evictions(pod: JSONObject) -> Iterator[str]:
    """Yield the reason of a kubelet eviction, if there was one."""
    status = meta.status(pod)
    if status.get("phase") == "Failed" and status.get("reason"):
        yield str(status["reason"])


def _is_same_termination(recorded: str, own: str) -> bool:
    """Return whether two descriptions refer to the same container termination, ignoring the log line."""
    ends = [
        match.group("container", "code", "reason") for text in (recorded, own) if (match := RECORDED.fullmatch(text))
    ]
    return len(ends) == 2 and ends[0] == ends[1]


def _with_log(pod: JSONObject, logs: Logs) -> JSONObject:
    """Return a pod with the error in a container log as the termination message, if there is an error."""
    status = meta.status(pod)
    kinds = ("initContainerStatuses", "containerStatuses")
    return pod | {
        "status": status
        | {kind: [_with_log_error(pod, own, logs) for own in status[kind]] for kind in kinds if status.get(kind)}
    }


def _with_log_error(pod: JSONObject, status: JSONObject, logs: Logs) -> JSONObject:
    runs = logs.get((meta.uid(pod), str(status.get("name"))), ())
    when = "state" if (status.get("state") or {}).get("terminated") else "lastState"
    ended = (status.get(when) or {}).get("terminated")
    run = (
        runs[-2]
        if when == "lastState" and len(runs) > 1 and "waiting" not in (status.get("state") or {})
        else runs[-1:]
    )
    lines = (run if isinstance(run, str) else "".join(run)).splitlines()[-errorlines.JUDGED :]
    if not ended or not errorlines.first_error(lines).is_certain:
        return status
    return status | {when: {"terminated": ended | {"message": "\n".join(errorlines.error_excerpt(lines, 1))}}}


def _failures(pod: JSONObject) -> Iterator[str]:
    """Yield the first failures of a container. They are empty if its status does not contain that run."""
    for status in podstate.container_statuses(pod):
        runs = [(status.get(when) or {}).get("terminated") or {} for when in ("lastState", "state")]
        failed_runs = [run for run in runs if podstate.is_failure(run) and not podstate.was_ended_by_deletion(pod, run)]
        run_count, visible_count = int(status.get("restartCount") or 0) + bool(runs[1]), sum(map(bool, runs))
        if failed_runs:
            yield str(failed_runs[0].get("finishedAt") or "") if run_count <= visible_count else ""


def ends(container: JSONObject, pod: JSONObject | None = None) -> Iterator[RunTermination]:
    """Yield the terminations of the last container runs in the pod status, oldest first."""
    for state in (container.get("lastState"), container.get("state")):
        ended = (state or {}).get("terminated")
        if ended:
            finished = str(ended.get("finishedAt") or "")
            is_asked = pod is not None and podstate.was_ended_by_deletion(pod, ended)
            reason = episode.ON_REQUEST if is_asked else str(ended.get("reason") or "")
            yield RunTermination(exit_code=int(ended.get("exitCode") or 0), reason=reason, finished_at=finished)


def _ranks(traces: GroupObservation, mask: Mask) -> Iterator[RecordedRank]:
    for pod in traces.pods:
        place = group_and_rank(pod)
        if place is not None:
            read = partial(_record_rank, pod, place[1], traces.logs, mask)
            yield errorboundary.attempt(read, partial(_unreadable_rank, pod, place[1]))


def _unreadable_rank(pod: JSONObject, index: int, error: str) -> RecordedRank:
    return RecordedRank(rank=index, pod=meta.name(pod), phase=error)


def _record_rank(pod: JSONObject, index: int, logs: Logs, mask: Mask) -> RecordedRank:
    return RecordedRank(
        rank=index,
        pod=meta.name(pod),
        node=str(meta.spec(pod).get("nodeName") or ""),
        phase=str(meta.status(pod).get("phase") or ""),
        containers=tuple(_record_container(pod, status, logs, mask) for status in podstate.container_statuses(pod)),
    )


def _record_container(pod: JSONObject, status: JSONObject, logs: Logs, mask: Mask) -> RecordedContainer:
    name = str(status.get("name"))
    runs = logs.get((meta.uid(pod), name), ())
    return RecordedContainer(
        name=name,
        restarts=int(status.get("restartCount") or 0),
        ends=tuple(ends(status, pod)),
        logs=tuple(
            errorboundary.attempt(partial(_masked_lines, run, mask), lambda error: (f"the log {error}",))
            for run in runs
        ),
    )


def _masked_lines(run: str, mask: Mask) -> tuple[str, ...]:
    return tuple(mask.text(run).splitlines()[-episode.LINES :])


def _events(traces: GroupObservation, mask: Mask) -> list[EpisodeEvent]:
    """Return the events about the pods and the LeaderWorkerSet, oldest first."""
    uids = {meta.uid(pod) for pod in traces.pods} | ({meta.uid(traces.lws)} if traces.lws else set())
    own = [event for event in traces.events if (event.get("involvedObject") or {}).get("uid") in uids]
    occurrences = sorted(map(convert, own), key=lambda occurrence: occurrence.last)
    return [
        EpisodeEvent(
            time=timestamps.render(occurrence.last),
            object=occurrence.object,
            message=mask.text(occurrence.message),
            is_warning=occurrence.is_warning,
            reason=occurrence.reason,
            count=occurrence.count,
        )
        for occurrence in occurrences[-episode.MOST_EVENTS :]
    ]


def _mask_change(change: FieldChange, mask: Mask) -> FieldChange:
    """Return a masked change, because lines can contain a part of a secret without the name of the secret."""
    before, after = (mask.text(value) if isinstance(value, str) else value for value in (change.before, change.after))
    return FieldChange(change.path, before, after)


def _revision(traces: GroupObservation, mask: Mask) -> Revision | None:
    """Return the revision of the group's pods, with the fields that differ from the previous revision."""
    key = next((key for pod in traces.pods if (key := groupname.revision_key(pod))), "")
    entries = previousrevisions.entries(traces.lws, traces.revisions) if traces.lws else []
    own = next((entry for entry in entries if entry.key == key), None)
    if own is None:
        return None
    before = next((entry for entry in reversed(entries) if entry.number < own.number), None)
    changes: list[str] = []
    if before is not None:
        try:
            old, new = ({"spec": revision_content(entry)} for entry in (before, own))
        except UnreadableRevisionError as error:
            changes = [f"cannot be determined: {error}"]
        else:
            changes = [mask.text(str(_mask_change(change, mask))) for change in fieldchanges.field_changes(old, new)]
    return Revision(
        number=own.number,
        key=key,
        created=own.created,
        before=None if before is None else before.number,
        changes=tuple(changes[: episode.MOST_CHANGES]),
    )
