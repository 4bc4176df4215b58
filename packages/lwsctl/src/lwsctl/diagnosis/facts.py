"""Determines whether the selection is complete, ready as specified, or failed recently. Pure."""

from datetime import datetime

from kuberuntime.objects import meta
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.decisions.admissionchecks import unreadable_leaderworkerset
from lwsctl.diagnosis import groupmoves
from lwsctl.diagnosis.causes import hangs, scaledworkers
from lwsctl.model.health import AS_DESIRED, HealthFacts, Verdict, derive_verdict
from lwsctl.model.leaderworkerset import View
from lwsctl.views.selection import Selection


def is_as_desired(view: View, selection: Selection, now: datetime) -> bool:
    """Return whether the selection is ready or complete, has no recent failure, and needs no group move."""
    return selection_verdict(view, selection, now) in AS_DESIRED and not groupmoves.is_moving(view)


def selection_verdict(view: View, selection: Selection, now: datetime) -> Verdict:
    """Return the verdict for a selection from its view, without a cause."""
    return derive_verdict(view_health(view, selection), now)


def view_health(view: View, selection: Selection, *, ends: bool = False, cause: Verdict | None = None) -> HealthFacts:
    """Return the health of a selection. If `ends` is set, ranks that exited with code 0 are considered complete."""
    groups = [group for group in view.groups if selection.group in (None, group.name)]
    return HealthFacts(
        is_complete=is_complete(view, selection, ends=ends),
        is_ready=_is_ready(view, selection),
        crashes=tuple(group.crashes for group in groups if group.crashes is not None),
        cause=cause,
    )


def is_complete(view: View, selection: Selection, *, ends: bool) -> bool:
    """Return whether the selected ranks run to completion and have completed."""
    if meta.is_deleting(view.object) or unreadable_leaderworkerset(view.object):
        return False
    if selection.group is None:
        return view.is_complete or (ends and view.is_finished)
    groups = [group for group in view.groups if group.name == selection.group]
    if any(group.end is GroupEnd.COMPLETE for group in groups):
        return True
    members = [(group, rank) for group in groups for rank in group.ranks if selection.rank in (None, rank.index)]
    return ends and bool(members) and all(group.is_complete(rank) for group, rank in members)


def _is_ready(view: View, selection: Selection) -> bool:
    """Return whether all selected ranks are ready and have the latest revision."""
    if meta.is_deleting(view.object) or unreadable_leaderworkerset(view.object) or not _are_ready(view, selection):
        return False
    # last, because they compare all pods
    hung = [group.name for group in hangs.hung_groups(view) if selection.group in (None, group.name)]
    return not hung and not any(scaledworkers.scaled_groups(view))


def _are_ready(view: View, selection: Selection) -> bool:
    """Return whether all selected ranks are ready. For a whole set, they must also have the latest revision."""
    if selection.group is None:
        return view.is_ready and view.updated >= view.desired
    groups = [group for group in view.groups if group.name == selection.group and not group.is_condemned]
    members = [rank for group in groups for rank in group.ranks if selection.rank in (None, rank.index)]
    return bool(members) and all(rank.is_ready for rank in members)
