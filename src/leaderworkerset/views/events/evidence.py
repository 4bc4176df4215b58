"""A view with evidence of other objects: Warning events as reasons, records as recreations of groups. Pure.

The result, a tree of groups, ranks, states, reasons and recreations, is what `lws get`, `wait` and `run` print.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.views import recreations
from leaderworkerset.views.events.warningevents import Warnings, explanation, is_unexplained
from leaderworkerset.views.groups import Group, Rank, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Warning events (v1) and records of recreations, of one namespace or of all."""

    events: Sequence[JSONObject] = ()
    records: Sequence[JSONObject] = ()


def wants_events(views: Iterable[View]) -> bool:
    """Return whether a rank is not ready for a reason that its pod does not show."""
    return any(is_unexplained(rank) for view in views for group in view.groups for rank in group.ranks)


def explained(views: Iterable[View], found: Evidence, now: datetime) -> list[View]:
    """Return the views with the reasons and recreations of the evidence."""
    warnings, records = Warnings(found.events), recreations.by_group(found.records)
    return [
        replace(view, groups=tuple(_group(view, group, warnings, records, now) for group in view.groups))
        for view in views
    ]


def _group(
    view: View, group: Group, warnings: Warnings, records: Mapping[tuple[str, str, str], JSONObject], now: datetime
) -> Group:
    record = records.get((view.namespace, view.name, str(group.index)))
    leader = next((rank.object for rank in group.ranks if rank.index == 0), None)
    ranks = tuple(_rank(rank, explanation(view, group, rank, warnings, now)) for rank in group.ranks)
    told = recreations.read(record, leader) if record is not None else None
    return replace(group, ranks=ranks, recreations=told)


def _rank(rank: Rank, why: str) -> Rank:
    return replace(rank, why=why) if why else rank
