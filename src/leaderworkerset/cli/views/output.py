"""Output for people and programs: tables, ages, JSON, YAML. Pure: values in, text out."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.cli.views.terminal import escaped
from leaderworkerset.views import advancing, recreations, wording
from leaderworkerset.views.groups import Group, Rank, View
from leaderworkerset.views.wording import age

SET_HEADER = ("NAME", "READY", "DESIRED", "UP-TO-DATE", "AGE")
GROUP_HEADER = ("GROUP", "RANK", "POD", "STATE", "READY", "RESTARTS", "AGE")
WIDE_HEADER = ("NODE", "ADDRESS", "REVISION")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Align columns with three spaces between, as kubectl does; control characters are escaped.

    >>> table(("NAME", "AGE"), [("a", "5s"), ("longer", "1m")])
    ['NAME     AGE', 'a        5s', 'longer   1m']
    """
    lines = [tuple(header), *(tuple(map(escaped, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return [
        (indent + "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip()
        for line in lines
    ]


def sets(
    views: Sequence[View], now: datetime, *, with_namespace: bool = False, reasons: Sequence[str] = ()
) -> list[str]:
    """Return one line per LeaderWorkerSet; the columns are those of the API (R-API-3), and WHY if there are reasons."""
    header = [*(["NAMESPACE"] if with_namespace else []), *SET_HEADER, *(["WHY"] if reasons else [])]
    rows = [[*([view.namespace] if with_namespace else []), *set_row(view, now)] for view in views]
    return table(header, [[*row, why] for row, why in zip(rows, reasons, strict=True)] if reasons else rows)


def set_row(view: View, now: datetime) -> tuple[str, ...]:
    """Return the cells of a LeaderWorkerSet below SET_HEADER."""
    return view.name, str(view.ready), str(view.desired), str(view.up_to_date), age(view.created, now)


def groups(shown: Iterable[Group], now: datetime, *, wide: bool = False) -> list[str]:
    """Return one line per rank, with a column WHY if any rank has a reason."""
    ranks = [(group, rank) for group in shown for rank in group.ranks]
    has_reasons = any(wording.reason(rank) for _, rank in ranks)
    header = [*GROUP_HEADER, *(WIDE_HEADER if wide else ()), *(["WHY"] if has_reasons else [])]
    return table(header, [_rank_row(group, rank, now, wide=wide, reasons=has_reasons) for group, rank in ranks])


def _rank_row(group: Group, rank: Rank, now: datetime, *, wide: bool, reasons: bool) -> list[str]:
    row = [
        str(rank.group),
        str(rank.index),
        rank.pod,
        wording.state(rank),
        "yes" if rank.is_ready else "no",
        str(rank.restarts),
        age(rank.created, now),
    ]
    if wide:
        row += [rank.node or "-", rank.address or "-", group.revision or "-"]
    return [*row, wording.reason(rank)] if reasons else row


def notes(view: View, now: datetime) -> list[str]:
    """Return the notes on a LeaderWorkerSet: its rollout, and the groups that were recreated."""
    told = [rollout(view)] if view.is_updating else []
    again = filter(None, (recreated(group, now) for group in view.groups))
    ended = sum(group.end is GroupEnd.COMPLETE for group in view.groups)
    told += [f"{view.name}: {ended} of {wording.counted(view.desired, 'group')} complete"] if ended else []
    return [*unlisted(view), *told, *again, *advancing_groups(view.groups, now)]


def advancing_groups(shown: Iterable[Group], now: datetime) -> list[str]:
    """Return a line about each group that has said something of its progress."""
    return [f"group {group.name}: {text}" for group in shown if (text := advancing.sentence(group, now))]


def unlisted(view: View) -> list[str]:
    """Return a line about the groups that are not listed, if there are some."""
    return [f"… and {wording.counted(view.more, 'more group')} without a pod"] if view.more else []


def rollout(view: View) -> str:
    """Return how far a rollout is."""
    return f"{view.name}: updated {view.up_to_date} of {wording.counted(view.desired, 'group')}"


def recreated(group: Group, now: datetime) -> str:
    """Return how often a group was recreated, and what of it restarts in place; empty if nothing does, and it was not."""
    restarts = "" if group.is_ready else recreations.in_place(group, now)
    if group.recreations is None:
        return f"group {group.name}: {restarts}" if restarts else ""
    told = f"group {group.name} {recreations.sentence(group.recreations, now)}"
    return f"{told}; {restarts}" if restarts else told


def as_json(value: Any) -> str:
    """Render a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_json_line(value: Any) -> str:
    """Render a value as JSON on one line."""
    return msgspec.json.encode(value).decode()


def as_yaml(value: Any) -> str:
    """Render a value as YAML in block style, keys in their order."""
    import yaml

    from kuberuntime.manifests.yamltext import SafeDumper

    return str(yaml.dump(value, Dumper=SafeDumper, sort_keys=False, allow_unicode=True)).rstrip("\n")
