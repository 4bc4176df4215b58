"""The tables of DisaggregatedSets: a line for each, and below them the LeaderWorkerSets of each. Pure.

If there are many, each has only a line: first those that are not ready.
"""

from collections.abc import Sequence
from datetime import datetime

from leaderworkerset.cli.views import output
from leaderworkerset.views.disaggregation import SetView
from leaderworkerset.views.wording import age

HEADER = ("DISAGGREGATEDSET", "READY", "ROLLOUT", "AGE")
PARTS = ("LEADERWORKERSET", "ROLE", "SLICE", "REVISION", "READY", "DESIRED")


def lines(sets: Sequence[SetView], now: datetime, *, with_namespace: bool = False, is_brief: bool = False) -> list[str]:
    """Return the table of the sets, and one table for the parts of each unless it `is_brief`."""
    if not sets:
        return []
    sets = sorted(sets, key=lambda one: one.is_ready) if is_brief else sets
    header = ("NAMESPACE", *HEADER) if with_namespace else HEADER
    rows = [((one.namespace,) if with_namespace else ()) + _row(one, now) for one in sets]
    shown = output.table(header, rows)
    for one in () if is_brief else sets:
        if one.parts:
            shown += ["", f"{one.namespace}/{one.name}:" if with_namespace else f"{one.name}:", *_parts(one)]
    return shown


def _row(view: SetView, now: datetime) -> tuple[str, ...]:
    return view.name, ", ".join(map(str, view.roles)), view.rollout, age(view.created, now)


def _parts(view: SetView) -> list[str]:
    rows = [
        (part.view.name, part.role, part.slice, part.revision, str(part.view.ready), str(part.view.desired))
        for part in view.parts
    ]
    return output.table(PARTS, rows)
