"""A view with evidence of other objects: Warning events as reasons, records as recreations of groups. Pure.

The result, a tree of groups, ranks, states, reasons and recreations, is what `lws get`, `wait` and `run` print.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kuberuntime.objects import podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname
from leaderworkerset.views import deaths, recreations
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
    leader = next((rank.object for rank in group.ranks if rank.index == 0), None)
    record = records.get((view.namespace, view.name, groupname.label(leader) if leader else str(group.name)))
    told = recreations.read(record, leader) if record is not None else None
    runs = {
        rank.pod: tuple(deaths.of_pod(rank.object, now)) for rank in group.ranks if rank.object and not rank.is_ready
    }
    if told and not group.is_ready and not any(runs.values()) and (run := recreations.failed_run(view, told, now)):
        runs[run.pod] = (run,)
    shown = [replace(rank, deaths=runs.get(rank.pod, ())) for rank in group.ranks]
    ranks = (replace(rank, why=_why(view, group, rank, warnings, now)) for rank in shown)
    return replace(group, ranks=tuple(ranks), recreations=told)


def _why(view: View, group: Group, rank: Rank, warnings: Warnings, now: datetime) -> str:
    if rank.deaths and rank.node and is_unexplained(rank):
        return f"{rank.deaths[0].container}: {podstate.death(rank.deaths[0].end)}; started again"
    return explanation(view, group, rank, warnings, now) or rank.why
