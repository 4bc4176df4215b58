"""Runs of containers that failed, and which of several ranks' explains the others'. Pure.

Of several ranks that crashed, the one that ended first is the cause: the others often end because it did. After many
restarts it is not known any more which one ended first. Then the one that crashed most often is named, of several such
ones the one that ran for the shortest time.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.views.groups import Group, Rank, View

SETTLED: Final = timedelta(minutes=1)
"""After this running time a container's last failure is no reason for it being unready."""

REMEMBERED: Final = timedelta(minutes=10)
"""How long after its recreation a group that failed twice in a row is not ready for the same reason."""

RECORDED: Final = re.compile(
    r"(?P<container>\S+): exit code (?P<code>\d+)(?:, (?P<reason>\w+)(?=[:,]|$))?(?:: |, last line: )?(?P<line>.*)"
)
"""How a record of recreations describes a container that ended (`core.restarts.failure`)."""


@dataclass(frozen=True, slots=True)
class Death:
    """A run of a container that ended with another exit code than 0, or that made its group be recreated."""

    rank: Rank
    container: str
    end: JSONObject
    is_init: bool
    restarts: int = 0
    first: str = ""
    """When the first run of the container ended; empty if that is not known any more."""
    is_over: bool = False
    """Whether a later run of the container is in progress."""
    is_recorded: bool = False
    """Whether the pod of that run does not exist any more; the record of recreations describes it."""

    @property
    def seconds(self) -> float:
        """Return how long the run lasted."""
        try:
            started, finished = (datetime.fromisoformat(self.end[key]) for key in ("startedAt", "finishedAt"))
        except (KeyError, ValueError):
            return float("inf")
        return (finished - started).total_seconds()


def of_rank(rank: Rank, now: datetime) -> Iterator[Death]:
    """Yield the failed runs of a rank's containers that may still matter."""
    inits = {str(one.get("name")) for one in meta.status(rank.object or {}).get("initContainerStatuses") or []}
    for one in podstate.container_statuses(rank.object or {}):
        name, restarts = str(one.get("name")), int(one.get("restartCount") or 0)
        state, last = one.get("state") or {}, (one.get("lastState") or {}).get("terminated") or {}
        ended = state.get("terminated") or {}
        first = str((ended if restarts == 0 else last if restarts == 1 else {}).get("finishedAt") or "")
        if ended.get("exitCode"):
            yield Death(rank, name, ended, name in inits, restarts, first)
        elif last.get("exitCode") and restarts and not ended and not _has_settled(state, now):
            # Without a counted restart the last run did not fail: its node was restarted.
            yield Death(rank, name, last, name in inits, restarts, first, is_over="running" in state)


def _has_settled(state: JSONObject, now: datetime) -> bool:
    try:
        started = datetime.fromisoformat((state.get("running") or {}).get("startedAt") or "")
    except ValueError:
        return False
    return started.tzinfo is not None and now - started >= SETTLED


def recorded(view: View, group: Group, now: datetime) -> Death | None:
    """Return the failure of a group that failed again after its recreation, as its record describes it.

    It remains the reason while the group starts again, until it is ready or `REMEMBERED` is over.
    """
    told = group.recreations
    if told is None or told.count < 2 or group.is_ready or now - told.due >= REMEMBERED:
        return None
    found = RECORDED.fullmatch(told.failure)
    rank = next((rank for rank in group.ranks if rank.pod == told.failed_pod), None)
    if found is None or rank is None:
        return None
    template = meta.spec(view.object).get("leaderWorkerTemplate") or {}
    pod = (None if rank.index else template.get("leaderTemplate")) or template.get("workerTemplate") or {}
    inits = {one.get("name") for one in meta.spec(pod).get("initContainers") or []}
    end = {"exitCode": int(found["code"]), "reason": found["reason"] or "", "message": found["line"]}
    return Death(rank, found["container"], end, found["container"] in inits, is_recorded=True)


def in_order(found: Iterable[Death]) -> list[Death]:
    """Return failed runs, the one that explains the others first."""
    listed = list(found)
    if is_order_known(listed):
        return sorted(listed, key=lambda one: one.first)
    return sorted(listed, key=lambda one: (-one.restarts, one.seconds))


def is_order_known(found: list[Death]) -> bool:
    """Return whether it is known which rank crashed first."""
    return len({one.rank.pod for one in found}) < 2 or all(one.first for one in found)
