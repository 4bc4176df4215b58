"""Predicts the order and duration of group moves if nodes are drained, and the remaining groups. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from math import ceil
from statistics import median_low
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, leaderworkerset
from leaderworkerset.api.groupname import GroupName
from leaderworkerset.decisions.nodemaintenance import choose_moves
from leaderworkerset.decisions.rolloutsteps import read_rollout_budget
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.rollout.applyforecast import startup_times
from lwsctl.views.wording import duration, format_count

MIRROR: Final = "kubernetes.io/config.mirror"
"""The annotation of static pods, which a drain cannot delete."""


class DrainForecast(Struct, frozen=True, kw_only=True):
    """The groups of one LeaderWorkerSet (`NAMESPACE/NAME`) that must be moved, in their order.

    At most `max_concurrent` groups move at a time, and `surge` of them are replaced before they are deleted. `duration` is the
    total duration, estimated from earlier starts, or None if unknown. If `obstacle` is not empty, no group moves.
    """

    set_path: str
    groups: tuple[GroupName, ...]
    max_concurrent: int
    surge: int
    duration: timedelta | None
    obstacle: str = ""


def forecast_moves(view: View, groups: Sequence[Group], why_not: str = "") -> DrainForecast:
    """Return the predicted moves of these groups. Raise ValueError if the rollout strategy is invalid."""
    limits = read_rollout_budget(leaderworkerset.decode(view.object).spec)
    extra = 0 if groupname.uses_random_keys(view.object) else limits.surge
    at_once = max(limits.unavailable + extra, 1)
    available = {group.name for group in view.groups if group.is_ready}
    ordered = [group.name for group in sorted(groups, key=_move_order)]
    starts = startup_times(view)
    return DrainForecast(
        set_path=f"{view.namespace}/{view.name}",
        groups=tuple(choose_moves(ordered, available, least=0)),
        max_concurrent=at_once,
        surge=extra,
        duration=median_low(starts) * ceil(len(groups) / at_once) if starts else None,
        obstacle=why_not,
    )


def _move_order(group: Group) -> tuple[int, str]:
    """Return the sort key for the order of moves: the reverse index, or the leader name with random keys."""
    return (0, group.ranks[0].pod) if group.key else (-group.index, "")


def lines(sets: Iterable[DrainForecast]) -> Iterator[str]:
    """Yield a line for each LeaderWorkerSet with the groups that would move, or the reason why none would move."""
    for leaving in sets:
        many = f"{'group' if len(leaving.groups) == 1 else 'groups'} {', '.join(map(str, leaving.groups))}"
        if leaving.obstacle:
            yield f"  {leaving.set_path}: {many} would remain, because {leaving.obstacle}"
            continue
        extra = f", {format_count(leaving.surge, 'extra group')} first" if leaving.surge else ""
        takes = f", about {duration(leaving.duration)}" if leaving.duration is not None else ""
        yield f"  {leaving.set_path}: {many} would move, at most {leaving.max_concurrent} at a time{extra}{takes}"


def describe_other_pods(pods: Iterable[JSONObject]) -> str:
    """Return the number of pods outside groups by kind of owner, or an empty string if there are none."""
    kinds = [_owner_kind(pod) for pod in pods]
    others = kinds.count("")
    words = [format_count(others, "pod") + " that are not moved (`kubectl drain` evicts them)"] if others else []
    words += [f"{format_count(count, 'pod')} of {kind}" for kind in (DAEMONS, NODE) if (count := kinds.count(kind))]
    return ", ".join(words)


DAEMONS: Final = "DaemonSets"
NODE: Final = "the node itself"


def _owner_kind(pod: JSONObject) -> str:
    if MIRROR in meta.annotations(pod):
        return NODE
    return DAEMONS if (meta.controller_of(pod) or {}).get("kind") == "DaemonSet" else ""
