"""Finds failed container runs, and the rank whose failure caused all other failures.

If several ranks crashed, the first crash is the cause, because the other ranks often exit as a result. After many
restarts, the first crash is no longer known. In that case, the cause is the rank with the most crashes or, if there
are several, the one with the shortest run.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, TypeVar

from msgspec import Struct

from kuberuntime.objects import meta, podstate, timestamps
from kuberuntime.objects.meta import JSONObject

T = TypeVar("T")


SETTLED: Final = timedelta(minutes=1)
"""The minimum duration for which a group must be ready after a failure to be considered healthy."""

REMEMBERED: Final = timedelta(minutes=10)
"""The time during which a failure is relevant for an unready group, as in the manager's back-off.

Longer runs are not part of a crash loop.
"""

TICK: Final = timedelta(seconds=1)
"""The resolution of API timestamps."""


def required_ready_time(longest_run: timedelta, least: timedelta = SETTLED) -> timedelta:
    """Return the duration for which a group must be ready after a failure to be healthy. It exceeds the longest run.

    >>> required_ready_time(timedelta(seconds=2)), required_ready_time(timedelta(minutes=3)), required_ready_time(timedelta(hours=3))
    (datetime.timedelta(seconds=60), datetime.timedelta(seconds=181), datetime.timedelta(seconds=60))
    """
    return max(least, longest_run + TICK if longest_run < REMEMBERED else least)


class ContainerFailure(Struct, frozen=True):
    """A container run that failed, or that caused the recreation of its group."""

    pod: str
    container: str
    end: JSONObject
    is_init: bool
    restarts: int = 0
    first: str = ""
    """The finish time of the container's first run, or an empty string if it is unknown."""
    is_over: bool = False
    """Whether the container was restarted and is running."""
    is_recorded: bool = False
    """Whether the run was read from the recreation record. Its pod might no longer exist."""

    @property
    def seconds(self) -> float:
        """Return the duration of the run."""
        length = run_duration(self.end)
        return float("inf") if length is None else length.total_seconds()


def of_pod(pod: JSONObject, now: datetime) -> Iterator[ContainerFailure]:
    """Yield the relevant failed runs of the containers in a pod, unless the pod is being deleted.

    A failed run is no longer relevant if the container has been running for longer than that run and longer than a
    minute. A run that was stopped by an in-place restart of all containers did not fail, because a different
    container of the pod failed.
    """
    inits = {str(status.get("name")) for status in meta.status(pod).get("initContainerStatuses") or []}
    inits -= podstate.sidecars(pod)
    for status in podstate.container_statuses({} if meta.is_deleting(pod) else pod):
        name, restarts = str(status.get("name")), int(status.get("restartCount") or 0)
        state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated") or {}
        ended = state.get("terminated") or {}
        first = str((ended if restarts == 0 else last if restarts == 1 else {}).get("finishedAt") or "")
        if podstate.is_failure(ended):
            yield ContainerFailure(meta.name(pod), name, ended, name in inits, restarts, first)
        elif podstate.is_failure(last) and restarts and not ended and not _has_settled(state, last, now):
            # Without a counted restart, the last run did not fail, because its node was restarted.
            yield ContainerFailure(
                meta.name(pod), name, last, name in inits, restarts, first, is_over="running" in state
            )


def _has_settled(state: JSONObject, last: JSONObject, now: datetime) -> bool:
    started = timestamps.read(str((state.get("running") or {}).get("startedAt") or ""))
    return started is not None and now - started >= required_ready_time(run_duration(last) or timedelta())


def run_duration(end: JSONObject) -> timedelta | None:
    """Return the duration of a run, or None if a time is unknown, which Go encodes as null."""
    started, finished = (timestamps.read(str(end.get(key) or "")) for key in ("startedAt", "finishedAt"))
    return None if started is None or finished is None else finished - started


def in_order(failed_runs: Iterable[ContainerFailure]) -> list[ContainerFailure]:
    """Sort failed runs. The run that explains the other failures is first."""
    runs = list(failed_runs)
    if all(run.first for run in runs):
        return sorted(runs, key=lambda run: (run.first, run.seconds))
    return sorted(runs, key=lambda run: (-run.restarts, run.seconds))


def is_order_known(runs: list[ContainerFailure]) -> bool:
    """Return whether the first failed rank is known. Two ranks can fail within the same second."""
    return earliest_name((run.pod, run.first) for run in runs) is not None


def earliest_name(ends: Iterable[tuple[T, str]]) -> T | None:
    """Return the name with the earliest time from pairs of name and time. An empty time means that it is unknown.

    Return None if the earliest name is unknown.

    >>> earliest_name([("a", "10:00:01"), ("b", "10:00:02")]), earliest_name([("a", "10:00:01"), ("b", "10:00:01")])
    ('a', None)
    """
    first_ends: dict[T, str] = {}
    for name, end in ends:
        first_ends[name] = min(first_ends.get(name, end), end)
    if len(first_ends) < 2:
        return next(iter(first_ends), None)
    earliest = min(first_ends.values())
    first = [name for name, end in first_ends.items() if end == earliest]
    return first[0] if all(first_ends.values()) and len(first) == 1 else None
