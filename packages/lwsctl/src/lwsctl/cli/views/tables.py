"""Formats the tables of `lws get`, which show LeaderWorkerSets and their ranks. Equal groups can share a row. Pure.

If there are many LeaderWorkerSets, each has one row with the reason of its first unready rank. Unready ones are
first.
"""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final

from msgspec import Struct

from lwsctl.cli.views import output
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.leaderworkerset import View
from lwsctl.views.grouprows import FEW_GROUPS, FEW_SETS, GroupRow, group_rows
from lwsctl.views.reasons import brief
from lwsctl.views.wording import age, format_count

FOLD_HEADER: Final = ("GROUPS", "READY", "STATE", "RESTARTS", "AGE", "REVISION")

MOST_FOLDS: Final = 40
"""The maximum number of distinct problems that are shown per LeaderWorkerSet."""


class TableOptions(Struct, frozen=True, kw_only=True):
    """Table options for nodes and addresses, for namespaces, and for a row per rank regardless of their number.

    With `is_chosen`, the user named the LeaderWorkerSets, and they are shown with their groups even if there are
    many. A wide table has a column for each resource in `usage`.
    """

    is_wide: bool = False
    shows_all_namespaces: bool = False
    shows_every_rank: bool = False
    is_chosen: bool = False
    usage: Sequence[str] = ()

    def is_brief(self, sets: int) -> bool:
        """Return whether there are so many sets that each set is shown in a single row."""
        return sets > FEW_SETS and not (self.is_wide or self.shows_every_rank or self.is_chosen)


def tables(views: Sequence[View], now: datetime, form: TableOptions) -> list[str]:
    """Return the table of LeaderWorkerSets, with their ranks or groups below."""
    if not views:
        return []
    if form.is_brief(len(views)):
        return rows(views, now, with_namespace=form.shows_all_namespaces)
    lines = output.sets(views, now, with_namespace=form.shows_all_namespaces)
    for view in views:
        if any(group.ranks for group in view.groups):
            title = f"{view.namespace}/{view.name}:" if form.shows_all_namespaces else f"{view.name}:"
            lines += ["", title] if len(views) > 1 else [""]
            lines += rank_lines(view, now, form)
    return lines


def rows(views: Sequence[View], now: datetime, *, with_namespace: bool = False) -> list[str]:
    """Return a row with the reason for each LeaderWorkerSet. Unready sets are first."""
    ordered = sorted(views, key=attrgetter("is_settled"))
    return output.sets(ordered, now, with_namespace=with_namespace, reasons=list(map(_waiting_reason, ordered)))


def _waiting_reason(view: View) -> str:
    """Return what a LeaderWorkerSet waits for, which is its first unready rank or groups of the old revision."""
    reasons = [brief(view), output.rollout(view).partition(": ")[2] if view.is_updating else ""]
    return "" if view.is_settled else "; ".join(filter(None, reasons))


def rank_lines(view: View, now: datetime, form: TableOptions) -> list[str]:
    """Return the ranks of a LeaderWorkerSet, or its groups if there are many, and the notes."""
    if form.is_wide or form.shows_every_rank or len(view.groups) <= FEW_GROUPS:
        return [*output.groups(view.groups, now, wide=form.is_wide, usage=form.usage), *output.notes(view, now)]
    return [
        *group_lines(view, now),
        *output.hidden_groups_line(view),
        *([output.rollout(view)] if view.is_updating else []),
    ]


def group_lines(view: View, now: datetime) -> list[str]:
    """Return a row for each set of equal groups. Problems are first, and healthy groups share a row."""
    group_folds = group_rows(view.groups, now)
    problems = [fold for fold in group_folds if not fold.is_fine]
    rows = [*problems[:MOST_FOLDS], *(fold for fold in group_folds if fold.is_fine)]
    hidden = sum(len(fold.groups) for fold in problems[MOST_FOLDS:])
    more = (
        [f"… and {format_count(hidden, 'more group')} not ready (use --not-ready to show their ranks)"]
        if hidden
        else []
    )
    table = output.table(FOLD_HEADER, [_cells(fold, now) for fold in rows], whys=[fold.reason for fold in rows])
    return [*table, *more]


def _cells(fold: GroupRow, now: datetime) -> tuple[str, ...]:
    counts = f"{fold.ready_ranks}/{fold.ranks}"
    return fold.group_names, counts, fold.state, str(fold.restarts), fold.age(now), fold.revision or "-"


DISAGGREGATED_HEADER = ("DISAGGREGATEDSET", "READY", "ROLLOUT", "AGE")
PARTS = ("LEADERWORKERSET", "ROLE", "SLICE", "REVISION", "READY", "DESIRED")


def set_tables(
    sets: Sequence[SetView], now: datetime, *, with_namespace: bool = False, is_brief: bool = False
) -> list[str]:
    """Return the table of sets. Unless it `is_brief`, also return a table for the parts of each set."""
    if not sets:
        return []
    sets = sorted(sets, key=lambda set_view: set_view.is_ready) if is_brief else sets
    rows = [
        (set_view.name, ", ".join(map(str, set_view.roles)), set_view.rollout, age(set_view.created, now))
        for set_view in sets
    ]
    places = [set_view.namespace for set_view in sets] if with_namespace else ()
    lines = output.table(DISAGGREGATED_HEADER, rows, namespaces=places)
    for set_view in () if is_brief else sets:
        if set_view.parts:
            title = f"{set_view.namespace}/{set_view.name}" if with_namespace else set_view.name
            lines += ["", f"{title}:", *_parts_table(set_view)]
    return lines


def _parts_table(view: SetView) -> list[str]:
    rows = [
        (part.name, part.role, part.slice, part.set_revision, str(part.ready), str(part.desired)) for part in view.parts
    ]
    return output.table(PARTS, rows)
