"""Finds consecutive failures of a group, from pod statuses and from the recreation record. Pure.

A group that crashes every two seconds is not healthy between two crashes. Therefore, all views contain these
failures.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta, podstate, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import REMEMBERED, run_duration
from lwsctl.model.failurehistory import Crashes, Recreations
from lwsctl.model.groups import COMPLETED, Group, Rank
from lwsctl.model.leaderworkerset import View

DISRUPTED: Final = re.compile(
    r"deleted(: (EvictionByEvictionAPI|DeletionByTaintManager|DeletionByPodGC|PreemptionByScheduler|NodeLost|NodeShutdown"
    r"|Terminated|Preempting|no manager was running)(: .*)?)?"
)
"""Recorded failures that were caused by a user, a drain, the scheduler, a lost node, or another component."""

EVICTED: Final = re.compile(r"deleted: Evicted\b")
NOTICED: Final = timedelta(seconds=20)
"""The maximum time until a kubelet detects that a pod exceeds its limits.

It checks every ten seconds, with data that may be older.
"""


class _Run(Struct, frozen=True):
    """A container run that terminated unexpectedly. If its duration is unknown, `duration` is None."""

    finished_at: datetime
    duration: timedelta | None
    number: int


def of_group(group: Group, *, ends: bool = False, evictions: Sequence[datetime] = ()) -> Crashes | None:
    """Return the consecutive failures of a group, or None. If `ends` is set, exit code 0 is not considered a failure.

    `evictions` are the sorted times at which kubelets evicted previous pods of the group that are not recorded.
    """
    if group.end is not None:
        return None
    record = group.recreations if group.recreations is not None and is_own_failure(group.recreations) else None
    suspects = [rank for rank in group.ranks if rank.object is not None and (rank.restarts or not rank.is_ready)]
    runs = [run for rank in suspects for run in _failed_runs(rank.object or {}, ends=ends)]
    if record is None and not runs and not evictions:
        return None
    times = [*evictions, *(run.finished_at for run in runs)] + ([record.due] if record else [])
    lengths = [run.duration for run in runs if run.duration is not None]
    lengths += [later - earlier for earlier, later in pairwise(evictions)]
    lengths += [] if record is None else _recorded_lengths(record)
    return Crashes(
        count=max([len(evictions), *(run.number for run in runs)] + ([record.count] if record else [])),
        first=min(times),
        last=max(times),
        longest_run=max(lengths, default=None),
        stable_since=_stable_since(group),
        is_ready=group.is_ready,
        is_condemned=record is not None and group.is_condemned,
    )


def _recorded_lengths(record: Recreations) -> list[timedelta]:
    """Return the longest recorded run. A kubelet may react later the next time after an eviction."""
    if EVICTED.match(record.failure):
        return [(record.longest_run or timedelta()) + NOTICED]
    return [] if record.longest_run is None else [record.longest_run]


def has_no_recent_failures(view: View, now: datetime) -> bool:
    """Return whether all groups have run for so long that failures are irrelevant and records are not needed."""
    moments = (_stable_since(group) for group in view.groups if group.end is None)
    return all(moment is not None and now - moment >= REMEMBERED for moment in moments)


def is_failing(view: View, now: datetime) -> bool:
    """Return whether a group failed and has not been ready for long enough since then."""
    return any(group.crashes is not None and not group.crashes.are_over(now) for group in view.groups)


def is_own_failure(record: Recreations) -> bool:
    """Return whether a group was recreated because of its own failure instead of a drain or deletion."""
    return DISRUPTED.fullmatch(record.failure) is None


def start_times(rank: Rank) -> list[datetime]:
    """Return the start time of the current container runs of a rank."""
    statuses = meta.status(rank.object or {}).get("containerStatuses") or []
    stamps = (((status.get("state") or {}).get("running") or {}).get("startedAt") for status in statuses)
    return [moment for stamp in stamps if (moment := timestamps.read(str(stamp or ""))) is not None]


def _failed_runs(pod: JSONObject, *, ends: bool) -> Iterator[_Run]:
    """Yield the last failed container runs. Completed init containers are ignored."""
    inits = meta.status(pod).get("initContainerStatuses") or []
    for status in podstate.container_statuses(pod):
        count, ended = int(status.get("restartCount") or 0), (status.get("state") or {}).get("terminated") or {}
        if status in inits and ended and not ended.get("exitCode"):
            continue
        last = (status.get("lastState") or {}).get("terminated") or {}
        # In-place restarts are configured. They delay the verdict healthy, but are not a crash loop.
        count = min(count, 1) if last.get("reason") == podstate.ALL_RESTARTED else count
        # If the restart was not counted, the last run did not fail. Its node was restarted.
        for end, number in ((last if count else {}, count), (ended if podstate.is_failure(ended) else {}, count + 1)):
            is_success = ends and not end.get("exitCode")
            if end and not is_success and not podstate.was_ended_by_deletion(pod, end):
                yield from _read_run(pod, end, number)


def _read_run(pod: JSONObject, end: JSONObject, number: int) -> Iterator[_Run]:
    finished = timestamps.read(str(end.get("finishedAt") or meta.creation_timestamp(pod)))
    if finished is not None:
        yield _Run(finished, run_duration(end), number)


def _stable_since(group: Group) -> datetime | None:
    """Return the time since which all ranks run with the same readiness, or None if a container is not running."""
    moments: list[datetime] = []
    for rank in group.ranks:
        if rank.state == COMPLETED:
            continue
        own = start_times(rank)
        ready = rank.ready_since
        if ready is None and len(own) < len(meta.spec(rank.object or {}).get("containers") or [None]):
            return None
        moments += own if ready is None else [*own, ready]
    return max(moments, default=None)
