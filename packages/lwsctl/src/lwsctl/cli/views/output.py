"""Formats tables, ages, JSON and YAML. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from lwsctl.cli.views.terminal import escape
from lwsctl.model.groups import Group, Rank
from lwsctl.model.leaderworkerset import View
from lwsctl.views import devices, groupprogress, rankusage, recreations, wording
from lwsctl.views.wording import age

SET_HEADER = ("NAME", "READY", "DESIRED", "UP-TO-DATE", "AGE")
GROUP_HEADER: tuple[str, ...] = ("GROUP", "RANK", "POD", "STATE", "READY", "RESTARTS", "AGE")


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    indent: str = "",
    *,
    namespaces: Sequence[str] = (),
    whys: Sequence[str] = (),
) -> list[str]:
    """Align columns with three spaces between them, as kubectl does. Control characters are escaped.

    Namespaces are the first column if there are any, and reasons are the last column if a row has one. A reason that
    repeats the reason of the previous row is replaced with a mark.

    >>> table(("NAME", "AGE"), [("a", "5s"), ("longer", "1m")])
    ['NAME     AGE', 'a        5s', 'longer   1m']
    >>> table(("NAME",), [("a",), ("b",)], namespaces=("d", "e"), whys=("", "no node"))
    ['NAMESPACE   NAME   WHY', 'd           a', 'e           b      no node']
    """
    if namespaces:
        header, rows = ("NAMESPACE", *header), [(place, *row) for place, row in zip(namespaces, rows, strict=True)]
    if any(whys):
        header, rows = (*header, "WHY"), [(*row, why) for row, why in zip(rows, without_repetitions(whys), strict=True)]
    lines = [tuple(header), *(tuple(map(escape, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return [
        (indent + "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip()
        for line in lines
    ]


def without_repetitions(whys: Sequence[str]) -> list[str]:
    """Return the reasons, in which a mark replaces each reason that is equal to the previous one.

    >>> without_repetitions(["no node", "no node", "", "no node"])
    ['no node', '"', '', 'no node']
    """
    return ['"' if at and why and why == whys[at - 1] else why for at, why in enumerate(whys)]


def sets(
    views: Sequence[View], now: datetime, *, with_namespace: bool = False, reasons: Sequence[str] = ()
) -> list[str]:
    """Return one line per LeaderWorkerSet.

    The columns are those of the API (R-API-3), and WHY if there are reasons.
    """
    places = [view.namespace for view in views] if with_namespace else ()
    return table(SET_HEADER, [set_row(view, now) for view in views], namespaces=places, whys=reasons)


def set_row(view: View, now: datetime) -> tuple[str, ...]:
    """Return the cells of a LeaderWorkerSet for SET_HEADER."""
    return view.name, str(view.ready), str(view.desired), str(view.up_to_date), age(view.created, now)


def groups(
    listed_groups: Iterable[Group], now: datetime, *, wide: bool = False, usage: Sequence[str] = ()
) -> list[str]:
    """Return one line per rank, with a WHY column if a rank has a reason. A wide table includes the resources in `usage`."""
    ranks = [(group, rank) for group in listed_groups for rank in group.ranks]
    header, rows = GROUP_HEADER, [rank_row(rank, now) for _, rank in ranks]
    if wide:
        header = (*header, "NODE", "ADDRESS", "REVISION")
        places = [(rank.node or "-", rank.address or "-", group.revision or "-") for group, rank in ranks]
        rows = [(*row, *place) for row, place in zip(rows, places, strict=True)]
        own = [",".join(devices.pod_devices(rank.object)) for _, rank in ranks]
        if any(own):
            header, rows = (*header, "DEVICES"), [(*row, names or "-") for row, names in zip(rows, own, strict=True)]
        header = (*header, *(rankusage.TITLES[name].upper() for name in usage))
        rows = [(*row, *rankusage.usage_cells(rank, usage, now)) for row, (_, rank) in zip(rows, ranks, strict=True)]
    return table(header, rows, whys=[wording.reason(rank) for _, rank in ranks])


def rank_row(rank: Rank, now: datetime) -> tuple[str, ...]:
    """Return the cells of a rank for GROUP_HEADER."""
    return (
        str(rank.group),
        str(rank.index),
        rank.pod,
        wording.state(rank),
        "yes" if rank.is_ready else "no",
        str(rank.restarts),
        age(rank.created, now),
    )


def notes(view: View, now: datetime) -> list[str]:
    """Return notes on the rollout and the recreated groups of a LeaderWorkerSet."""
    summary = [rollout(view)] if view.is_updating else []
    again = filter(None, (format_recreations(group, now) for group in view.groups))
    done = f"{view.name}: {view.completed} of {wording.format_count(view.desired, 'group')} complete"
    summary += [done] if view.completed else []
    return [*hidden_groups_line(view), *summary, *again, *advancing_groups(view.groups, now)]


def advancing_groups(listed_groups: Iterable[Group], now: datetime) -> list[str]:
    """Return a line for each group that has reported progress."""
    return [
        f"group {group.name}: {text}"
        for group in listed_groups
        if (text := groupprogress.progress_sentence(group, now))
    ]


def hidden_groups_line(view: View) -> list[str]:
    """Return a line about groups that are not listed, or no line if all groups are listed."""
    return [f"… and {wording.format_count(view.more, 'more group')} without a pod"] if view.more else []


def rollout(view: View) -> str:
    """Return the progress of a rollout."""
    return f"{view.name}: updated {view.updated} of {wording.format_count(view.desired, 'group')}"


def format_recreations(group: Group, now: datetime) -> str:
    """Return the recreations and in-place restarts of a group, or an empty string if there were none."""
    restarts = "" if group.is_ready else recreations.in_place(group, now)
    if group.recreations is None:
        return f"group {group.name}: {restarts}" if restarts else ""
    text = f"group {group.name} {recreations.sentence(group.recreations, now)}"
    return f"{text}; {restarts}" if restarts else text


def as_json(value: Any) -> str:
    """Format a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_json_line(value: Any) -> str:
    """Format a value as JSON on one line."""
    return msgspec.json.encode(value).decode()


def as_yaml(value: Any) -> str:
    """Format a value as block-style YAML with preserved key order. Multiline strings are blocks."""
    from lwsctl.cli.views import blockyaml

    return blockyaml.dump(value)
