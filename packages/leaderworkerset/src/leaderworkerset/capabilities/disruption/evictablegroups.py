"""Selects the groups that are open for evictions. The disruption budget limits their number.

Input: the groups with their budgets, and the maximum number of unavailable groups. Output: the groups to close and
the groups to open now. A group that is unavailable for any reason counts against the budget. If it is open, it
remains open, because it no longer needs protection.

Closing is safe at any time. Opening is safe while the number of groups that are open, unavailable or possibly being
evicted (`ProtectedGroup.is_quiet`) is below the budget. An eviction that was granted before a group was closed may
still be in progress.

`kubectl drain` evicts pods by name, and retries every 5 s. If a group has left the node in the meantime, its new pods
on other nodes have the same names. The drain waits until each of these evictions is granted
(docs/adr/0031-leases-and-drains.md). So a new group remains open for `LINGERING`. Later, new groups take turns when
no group is left on a closed node.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from leaderworkerset.capabilities.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.capabilities.disruption.groupbudget import ProtectedGroup

LINGERING: Final = 15.0
"""The seconds for which a group remains open after its leader is created. Tools retry evictions sooner."""

RECENT: Final = 600.0
"""The seconds after a leader is created during which a client might still evict the previous pods by name."""


class EvictableGroups(Struct, frozen=True):
    """The groups to close and the groups to open now.

    If `requeue_after` is None, the next turn starts after a change.
    """

    to_close: Sequence[ProtectedGroup]
    to_open: Sequence[ProtectedGroup]
    requeue_after: float | None


class Allowance(Struct, frozen=True, kw_only=True):
    """The disruption limit, and the number of desired groups that are missing."""

    limit: int
    missing: int


def decide(
    groups: Sequence[ProtectedGroup], budget: Allowance, settings: DisruptionSettings, now: datetime
) -> EvictableGroups:
    """Return the groups to close and the groups to open now."""
    away = [group for group in groups if not group.is_open and not group.is_complete]
    staying = [group for group in groups if group.is_open and not group.is_complete]
    complete_groups = sorted((group for group in groups if group.is_complete), key=_label_sort_key)
    places = max(budget.limit - budget.missing - len(away) - len(staying), 0)
    selection, again = _select_groups(complete_groups, places, settings, now)
    stay = {group.label for group in selection}
    close = [group for group in complete_groups if group.is_open and group.label not in stay]
    candidates = [*(group for group in selection if not group.is_open), *sorted(away, key=_label_sort_key)]
    return EvictableGroups(close, _groups_to_open(groups, candidates, budget), again)


def _groups_to_open(
    groups: Sequence[ProtectedGroup], candidates: Sequence[ProtectedGroup], budget: Allowance
) -> list[ProtectedGroup]:
    """Return the candidates that can be opened now. Unavailable candidates do not reduce the remaining budget."""
    used = budget.missing + sum(not group.has_no_pending_eviction for group in groups)
    opened: list[ProtectedGroup] = []
    for group in sorted(candidates, key=lambda candidate: not candidate.must_move):
        if group.budget is not None and used + group.has_no_pending_eviction <= budget.limit:
            opened.append(group)
            used += group.has_no_pending_eviction
    return opened


def _select_groups(
    complete_groups: Sequence[ProtectedGroup], places: int, settings: DisruptionSettings, now: datetime
) -> tuple[Sequence[ProtectedGroup], float | None]:
    """Return the groups to open, and the seconds until the next turn.

    New groups that are open are first. The groups on closed nodes follow, and take turns if there are too many, because
    the first group may never be evicted. Other groups stay unchanged, unless nodes are not watched. In that case, any
    group may be needed.
    """
    staying = [group for group in complete_groups if group.is_open and group.age < LINGERING and not group.must_move][
        :places
    ]
    kept = {group.label for group in staying}
    rest = [group for group in complete_groups if group.label not in kept]
    waiting = [group for group in rest if group.must_move or not settings.watches_nodes]
    waiting = waiting or [group for group in rest if group.age < RECENT]
    left = places - len(staying)
    ends = min((LINGERING - group.age for group in staying), default=None)
    if not 0 < left < len(waiting):
        first = {group.label for group in waiting}
        others = sorted(rest, key=lambda group: (group.label not in first, not group.is_open))
        return [*staying, *others[:left]], ends
    seconds = settings.open_duration.total_seconds()
    begin = int(now.timestamp() // seconds) * left % len(waiting)
    rotation = [*waiting[begin:], *waiting[:begin]]
    again = seconds - now.timestamp() % seconds
    return [*staying, *rotation[:left]], again if ends is None else min(again, ends)


def _label_sort_key(group: ProtectedGroup) -> tuple[int, str]:
    return len(group.label), group.label
