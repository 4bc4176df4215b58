"""Finds ranks that were never ready in their current run, and their start time and time limit. Pure.

The input is a rank, and the other ranks of its LeaderWorkerSet. The output is its startup, or None if the rank was
ready or crashed.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from kuberuntime.objects import decimals, meta, timestamps
from kuberuntime.objects.meta import JSONObject
from lwsctl.model.crashes import start_times
from lwsctl.model.failurehistory import Startup
from lwsctl.model.groups import Rank

WARM_UP: Final = timedelta(minutes=10)
"""The default time limit for the readiness of a rank, which allows for loading a large model."""

LONGER: Final = 2
"""The maximum start duration of a rank, relative to the longest start of another rank."""


def was_ready(rank: Rank) -> bool:
    """Return whether an unready rank was ready before in its current run.

    The condition Ready is set to False before the containers start, and changes again only when a ready rank fails.
    """
    ready = meta.find_condition(rank.object or {}, "Ready") or {}
    changed = timestamps.read(str(ready.get("lastTransitionTime") or ""))
    started = start_times(rank)
    return changed is not None and bool(started) and ready.get("status") == "False" and changed > max(started)


def longest_starts(ranks: Iterable[Rank]) -> Mapping[bool, timedelta]:
    """Return the longest starts of ready leaders (True) and ready workers (False) that never failed.

    A start lasts from the creation of a pod until it is ready.
    """
    starts: dict[bool, timedelta] = {}
    for rank in ranks:
        since, created = rank.ready_since, timestamps.read(rank.created)
        if since is not None and created is not None and since > created and not rank.restarts:
            is_leader = rank.index == 0
            starts[is_leader] = max(starts.get(is_leader, since - created), since - created)
    return starts


def rank_start(rank: Rank, last: timedelta | None = None) -> Startup | None:
    """Return the start of an unready rank, or None if it has no pod or was ready in its current run."""
    if rank.object is None or rank.is_ready or meta.is_deleting(rank.object) or was_ready(rank):
        return None
    created = timestamps.read(rank.created)
    began = max(start_times(rank), default=created) if rank.restarts else created
    if began is None:
        return None
    budget = max(map(_probe_time_limit, meta.spec(rank.object).get("containers") or ()), default=timedelta())
    delay = (max(start_times(rank), default=began) - began) + budget
    known = (last or timedelta()) * LONGER
    return Startup(since=began, patience=max(WARM_UP, delay, known), other_start=last)


def current_start(rank: Rank, last: Mapping[bool, timedelta], now: datetime) -> Startup | None:
    """Return the start of a rank, or None if its time limit is exceeded."""
    startup = None if rank.is_ready else rank_start(rank, last.get(rank.index == 0))
    return startup if startup is not None and startup.may_continue(now) else None


def _probe_time_limit(container: JSONObject) -> timedelta:
    """Return the maximum time that the probes of a container permit until it is ready."""
    startup, readiness = container.get("startupProbe") or {}, container.get("readinessProbe") or {}
    tries = (
        _probe_number(startup, "periodSeconds", 10) * _probe_number(startup, "failureThreshold", 3) if startup else 0
    )
    delays = _probe_number(startup, "initialDelaySeconds", 0) + _probe_number(readiness, "initialDelaySeconds", 0)
    return timedelta(seconds=tries + delays)


def _probe_number(probe: JSONObject, name: str, default: int) -> int:
    """Return a probe field. It is limited to a day, because users can set arbitrary numbers."""
    value = decimals.natural(str(probe.get(name, default)))
    return min(default if value is None else value, 86400)
