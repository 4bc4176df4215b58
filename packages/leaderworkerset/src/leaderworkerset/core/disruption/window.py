"""Which groups are open for evictions: at most as many as the budget, and no other before it is proved to be safe.

In: the groups with their budgets, and how many of them may be away. Out: those to close now, those to open now. A group
that is away for any reason uses up the budget; if it is open it stays so, since nothing of it is left to protect.

Closing is safe at any time. Opening is safe while fewer groups than the budget allows are open, away or not yet proved
to be quiet (`ProtectedGroup.is_quiet`): an eviction that was granted before a group was closed may still be on its way.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from leaderworkerset.core.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.core.disruption.groupbudget import ProtectedGroup


class Window(Struct, frozen=True):
    """The groups to close and to open now; after `again` seconds others have their turn, None: only after a change."""

    close: Sequence[ProtectedGroup]
    open: Sequence[ProtectedGroup]
    again: float | None


class Allowance(Struct, frozen=True, kw_only=True):
    """How many groups may be away at once, and how many of those that there shall be do not exist."""

    limit: int
    missing: int


def decide(groups: Sequence[ProtectedGroup], budget: Allowance, settings: DisruptionSettings, now: datetime) -> Window:
    """Return which groups to close and to open now."""
    away = [group for group in groups if not group.is_open and not group.is_whole]
    staying = [group for group in groups if group.is_open and not group.is_whole]
    whole = sorted((group for group in groups if group.is_whole), key=_by_label)
    places = max(budget.limit - budget.missing - len(away) - len(staying), 0)
    chosen, again = _choose(whole, places, settings, now)
    stay = {group.label for group in chosen}
    close = [group for group in whole if group.is_open and group.label not in stay]
    candidates = [*(group for group in chosen if not group.is_open), *sorted(away, key=_by_label)]
    return Window(close, _openable(groups, candidates, budget), again)


def _openable(
    groups: Sequence[ProtectedGroup], candidates: Sequence[ProtectedGroup], budget: Allowance
) -> list[ProtectedGroup]:
    """Return the candidates that may be opened now; one that is away itself takes no further place."""
    used = budget.missing + sum(not group.is_quiet for group in groups)
    opened: list[ProtectedGroup] = []
    for group in sorted(candidates, key=lambda one: not one.is_wanted):
        if group.budget is not None and used + group.is_quiet <= budget.limit:
            opened.append(group)
            used += group.is_quiet
    return opened


def _choose(
    whole: Sequence[ProtectedGroup], places: int, settings: DisruptionSettings, now: datetime
) -> tuple[Sequence[ProtectedGroup], float | None]:
    """Return the whole groups that are open, and in how many seconds others have their turn.

    Those on nodes that are closed come first, and take turns if there are too many: nobody may ever want to evict the
    first one. Others stay as they are, unless nodes are not watched and any of them may be wanted.
    """
    waiting = [group for group in whole if group.is_wanted or not settings.watches_nodes]
    if not 0 < places < len(waiting):
        others = sorted(whole, key=lambda group: (not group.is_wanted, not group.is_open))
        return others[:places], None
    seconds = settings.turn.total_seconds()
    begin = int(now.timestamp() // seconds) * places % len(waiting)
    turns = [*waiting[begin:], *waiting[:begin]]
    return turns[:places], seconds - now.timestamp() % seconds


def _by_label(group: ProtectedGroup) -> tuple[int, str]:
    return len(group.label), group.label
