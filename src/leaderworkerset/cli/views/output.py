"""Output as people and programs read it: tables, ages, JSON, YAML. Pure: values in, text out."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from leaderworkerset.cli.views.terminal import escaped
from leaderworkerset.views.groups import Group, Rank, View

GROUP_HEADER = ("GROUP", "RANK", "POD", "STATE", "READY", "RESTARTS", "AGE")
WIDE_HEADER = ("NODE", "ADDRESS", "REVISION")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    """Align columns with three spaces between, as kubectl does; controls are escaped.

    >>> table(("NAME", "AGE"), [("a", "5s"), ("longer", "1m")])
    ['NAME     AGE', 'a        5s', 'longer   1m']
    """
    lines = [tuple(header), *(tuple(map(escaped, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return [
        (indent + "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip()
        for line in lines
    ]


def age(created: str, now: datetime) -> str:
    """Return the time since an RFC 3339 moment, as kubectl rounds it.

    >>> from datetime import UTC
    >>> age("2026-01-01T00:00:00Z", datetime(2026, 1, 1, 0, 3, 20, tzinfo=UTC))
    '3m20s'
    """
    if not created:
        return ""
    return duration(now - datetime.fromisoformat(created))


STEPS = (  # below so many seconds: this unit, and then this smaller one
    (120, "s", ""),
    (600, "m", "s"),
    (3 * 3600, "m", ""),
    (8 * 3600, "h", "m"),
    (48 * 3600, "h", ""),
    (8 * 86400, "d", "h"),
    (730 * 86400, "d", ""),
    (float("inf"), "y", "d"),
)
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}


def duration(length: timedelta) -> str:
    """Return a length of time in at most two units: 5s, 3m20s, 15m, 4h10m, 30h, 3d, 2y100d."""
    seconds = max(int(length.total_seconds()), 0)
    unit, smaller = next((unit, smaller) for below, unit, smaller in STEPS if seconds < below)
    count, rest = divmod(seconds, UNITS[unit])
    remainder = rest // UNITS[smaller] if smaller else 0
    return f"{count}{unit}" + (f"{remainder}{smaller}" if remainder else "")


def sets(views: Sequence[View], now: datetime, *, with_namespace: bool = False) -> list[str]:
    """Return one line per LeaderWorkerSet; the columns are those of the API (R-API-3)."""
    header = ("NAME", "READY", "DESIRED", "UP-TO-DATE", "AGE")
    rows = [(v.name, str(v.ready), str(v.desired), str(v.up_to_date), age(v.created, now)) for v in views]
    if with_namespace:
        header = ("NAMESPACE", *header)  # type: ignore[assignment]  # one column more
        rows = [(v.namespace, *row) for v, row in zip(views, rows, strict=True)]  # type: ignore[misc]  # likewise
    return table(header, rows)


def groups(shown: Iterable[Group], now: datetime, *, wide: bool = False) -> list[str]:
    """Return one line per rank, with a column WHY if any rank has something to say."""
    ranks = [(group, rank) for group in shown for rank in group.ranks]
    has_reasons = any(rank.why for _, rank in ranks)
    header = [*GROUP_HEADER, *(WIDE_HEADER if wide else ()), *(["WHY"] if has_reasons else [])]
    return table(header, [_rank_row(group, rank, now, wide=wide, reasons=has_reasons) for group, rank in ranks])


def _rank_row(group: Group, rank: Rank, now: datetime, *, wide: bool, reasons: bool) -> list[str]:
    state = f"{rank.state} (stub)" if rank.is_stub else rank.state
    row = [
        str(rank.group),
        str(rank.index),
        rank.pod,
        state,
        "yes" if rank.is_ready else "no",
        str(rank.restarts),
        age(rank.created, now),
    ]
    if wide:
        row += [rank.node or "-", rank.address or "-", group.revision or "-"]
    return [*row, rank.why] if reasons else row


def as_json(value: Any) -> str:
    """Render a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_json_line(value: Any) -> str:
    """Render a value as JSON on one line."""
    return msgspec.json.encode(value).decode()


def as_yaml(value: Any) -> str:
    """Render a value as YAML in block style, keys in their order."""
    import yaml

    return str(yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)).rstrip("\n")
