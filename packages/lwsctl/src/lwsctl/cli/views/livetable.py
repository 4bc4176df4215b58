"""Formats the live view within the size of a terminal. Problems are first, and reasons are not truncated. Pure.

If there are up to ten groups, each rank has a line. Otherwise, each group has a line. If there are more than ten
LeaderWorkerSets, each has a line. If the column WHY does not fit, the reasons are printed below the table.
"""

import textwrap
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final

from msgspec import Struct

from lwsctl.cli.views import output
from lwsctl.cli.views.terminal import escape
from lwsctl.model.groups import UNREADY, Group, Rank, root_cause_rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import recreations, wording
from lwsctl.views.grouprows import FEW_GROUPS, FEW_SETS
from lwsctl.views.reasons import first_waiting, others_than_ready

FEW_REASONS: Final = 3
"""The maximum number of distinct reasons below a table."""

LEAST_ROWS: Final = 3
"""The minimum number of table rows, regardless of the terminal size."""

LEAST_REASON: Final = 30
"""The minimum number of columns for a reason in a row."""


class Size(Struct, frozen=True):
    """The number of columns and lines of the terminal. If the number of lines is None, there is no limit."""

    columns: int
    lines: int | None = None


class _Row(Struct, frozen=True):
    """An unaligned table row, the reason why it is not ready, and the pod with this reason."""

    cells: tuple[str, ...]
    reason: str
    is_ready: bool
    pod: str
    is_rank: bool

    @property
    def reason_without_pod(self) -> str:
        """Return the reason for the row. For a rank, the pod name is omitted, because the row already contains it."""
        return self.reason if self.is_rank or not self.pod else f"{self.pod}: {self.reason}"


def lines(views: Sequence[View], now: datetime, size: Size, *, with_namespace: bool = False) -> list[str]:
    """Return the live view of LeaderWorkerSets. Each LeaderWorkerSet has a share of the lines."""
    if len(views) > FEW_SETS:
        return [_truncate(line, size.columns) for line in _all_set_lines(views, now, size, with_namespace)]
    share = None if size.lines is None else max(size.lines // max(len(views), 1), 1)
    ordered = sorted(views, key=lambda view: all(group.is_fine for group in view.groups))
    all_lines = [
        line for view in ordered for line in ["", *_set_lines(view, now, Size(size.columns, share), with_namespace)]
    ]
    return [_truncate(line, size.columns) for line in all_lines]


def _all_set_lines(views: Sequence[View], now: datetime, size: Size, with_namespace: bool) -> list[str]:  # noqa: FBT001 - passed on
    header = ("NAMESPACE", *output.SET_HEADER) if with_namespace else output.SET_HEADER
    rows = [_of_set(view, now, with_namespace) for view in sorted(views, key=attrgetter("is_settled"))]
    return ["", *_table(header, rows, Size(size.columns, None if size.lines is None else size.lines - 2))]


def _of_set(view: View, now: datetime, with_namespace: bool) -> _Row:  # noqa: FBT001 - passed on
    cells = ((view.namespace,) if with_namespace else ()) + output.set_row(view, now)
    waiting_rank = first_waiting(view)
    if waiting_rank is None:
        return _Row(cells, "", view.is_settled, "", is_rank=False)
    first, why = waiting_rank[0], wording.reason(waiting_rank[0])
    return _Row(cells, f"{wording.state(first)}{f', {why}' if why else ''}", view.is_settled, first.pod, is_rank=False)


def _set_lines(view: View, now: datetime, size: Size, with_namespace: bool) -> list[str]:  # noqa: FBT001 - passed on
    head = output.sets([view], now, with_namespace=with_namespace)
    if view.is_updating:
        head.append(output.rollout(view))
    ordered = sorted(view.groups, key=lambda group: (group.is_fine, group.index))
    if len(ordered) > FEW_GROUPS:
        header: tuple[str, ...] = ("GROUP", "READY", "STATE", "RESTARTS", "AGE")
        rows = [_group_row(group, now) for group in ordered]
        foot = []
    else:
        header = output.GROUP_HEADER
        rows = [_rank_row(rank, now) for group in ordered for rank in group.ranks]
        notes = [*(output.format_recreations(group, now) for group in ordered), *output.advancing_groups(ordered, now)]
        foot = [line for text in notes for line in wrap(text, size.columns)]
    available = None if size.lines is None else size.lines - len(head) - len(foot) - 1
    return [*head, *_table(header, rows, Size(size.columns, available)), *foot]


def _rank_row(rank: Rank, now: datetime) -> _Row:
    return _Row(output.rank_row(rank, now), wording.reason(rank), rank.is_ready, rank.pod, is_rank=True)


def _group_row(group: Group, now: datetime) -> _Row:
    note = recreations.note(group, now)
    leader = group.leader
    cells = (
        str(group.name),
        f"{group.ready_ranks}/{len(group.ranks)}",
        others_than_ready(group) or "ready",
        str(group.restarts),
        wording.age(leader.created, now) if leader else "",
    )
    first = root_cause_rank(group.ranks)
    if first is None:
        return _Row(cells, note, group.is_ready, "", is_rank=False)
    return _Row(cells, "; ".join(filter(None, [first.why, note])), group.is_ready, first.pod, is_rank=False)


def _table(header: tuple[str, ...], rows: Sequence[_Row], size: Size) -> list[str]:
    """Align rows. If all reasons fit, they are printed in the rows, and otherwise below the rows."""
    bare = output.table(header, [row.cells for row in rows])
    reasons = [row.reason_without_pod for row in rows if row.reason]
    limit = size.columns - max(map(len, bare), default=0) - len("   ")
    if reasons and limit >= LEAST_REASON and all(len(escape(why)) <= limit for why in reasons):
        full_table = output.table(header, [row.cells for row in rows], whys=[row.reason_without_pod for row in rows])
        return _limit_rows(full_table, rows, size.lines, 0)
    below = _reason_lines(_reasons(rows), size)
    narrow = _drop_columns(header, rows, size.columns) if limit < 0 else bare
    return [*_limit_rows(narrow, rows, size.lines, len(below)), *below]


def _reason_lines(reasons: Sequence[str], size: Size) -> list[str]:
    """Return complete reasons in order, up to half of the lines, but at least one reason."""
    limit = None if size.lines is None else size.lines // 2
    result: list[str] = []
    for count, why in enumerate(reasons):
        more = wrap(why, size.columns)
        if count == FEW_REASONS or (count and limit is not None and len(result) + len(more) > limit):
            return [*result, f"… and {wording.format_count(len(reasons) - count, 'more reason')}"]
        result += more
    return result


def _reasons(rows: Sequence[_Row]) -> list[str]:
    """Return each distinct reason with its first pod and the number of other pods. Problems are first."""
    pods: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row.reason.startswith(UNREADY)):
        if row.reason:
            pods.setdefault(row.reason, []).append(row.pod)
    return [f"{_owner_name(about)}{why}" for why, about in pods.items()]


def _owner_name(pods: Sequence[str]) -> str:
    if not pods[0]:
        return ""
    return f"{pods[0]} and {len(pods) - 1} more: " if len(pods) > 1 else f"{pods[0]}: "


def _drop_columns(header: tuple[str, ...], rows: Sequence[_Row], columns: int) -> list[str]:
    """Remove columns until the table fits.

    Restarts are removed if all are zero, then ages, and then parts of pod names.
    """
    kept = list(range(len(header)))
    for name in ("RESTARTS", "AGE", "POD"):
        table = output.table([header[at] for at in kept], [[row.cells[at] for at in kept] for row in rows])
        if max(map(len, table)) <= columns:
            return table
        at = header.index(name) if name in header else -1
        if at in kept and (name != "RESTARTS" or all(row.cells[at] == "0" for row in rows)):
            kept.remove(at)
    return output.table([header[at] for at in kept], [[row.cells[at] for at in kept] for row in rows])


def _limit_rows(table: list[str], rows: Sequence[_Row], available: int | None, below: int) -> list[str]:
    """Limit the table to the available lines, and append the number of omitted rows."""
    limit = None if available is None else max(available - below - 1, LEAST_ROWS)
    if limit is None or len(rows) <= limit:
        return table
    hidden = rows[limit - 1 :]
    ready = sum(row.is_ready for row in hidden)
    noun = _row_noun(table[0].split())
    summary = "all ready" if ready == len(hidden) else f"{ready} ready"
    return [*table[:limit], f"… and {wording.format_count(len(hidden), f'more {noun}')}, {summary}"]


def _row_noun(header: Sequence[str]) -> str:
    if header[0] in {"NAME", "NAMESPACE"}:
        return "set"
    return "group" if header[1] == "READY" else "rank"


def wrap(text: str, columns: int) -> list[str]:
    """Wrap a string to the width of the terminal."""
    return textwrap.wrap(escape(text), max(columns - 1, 20), subsequent_indent="  ")


def _truncate(line: str, columns: int) -> str:
    return line if len(line) <= columns else f"{line[: columns - 1]}…"
