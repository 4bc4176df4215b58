"""Determines the actions that apply to the current state of an object, and the groups that they stop. Pure.

The input is a set of the snapshot. The output is the verbs that its page offers, and the sentence in the confirmation
dialog.
"""

from collections.abc import Mapping
from typing import Final

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import ObjectKey
from leaderworkerset.api import groupname
from lwsctl.dashboard.actions import Verb
from lwsctl.dashboard.snapshot import Snapshot
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.rollout.patches import is_paused
from lwsctl.views.wording import format_count

AGAIN: Final = "is deleted and recreated, which stops its processes"


def set_actions(view: View, *, has_past: bool = False) -> str:
    """Return the actions for a LeaderWorkerSet, separated by spaces.

    `has_past` means that it has a previous revision.
    """
    if meta.is_deleting(view.object) or meta.controller_of(view.object) is not None:
        return ""  # its owner would revert the change
    if is_paused(view.object):
        return _words(Verb.SCALE, Verb.RESUME)
    pause = [] if groupname.uses_random_keys(view.object) else [Verb.PAUSE]
    return _words(Verb.SCALE, Verb.RESTART, *pause, *([Verb.UNDO] if has_past else []))


def group_actions(view: View, group: Group) -> list[Verb]:
    """Return the actions for a group."""
    if meta.is_deleting(view.object):
        return []
    return [Verb.RECOVER_GROUP] if group.is_exhausted or group.is_over else [Verb.RESTART_GROUP]


def disaggregatedset_actions(set_view: SetView) -> str:
    """Return the actions for a DisaggregatedSet, separated by spaces."""
    return "" if meta.is_deleting(set_view.object) else _words(Verb.SCALE_ROLE)


def role_replicas(set_view: SetView) -> Mapping[str, int]:
    """Return the number of groups of each role in one slice, which `lws scale` changes."""
    slices = max(int(meta.spec(set_view.object).get("slices", 1)), 1)
    return {role.name: role.desired // slices for role in set_view.roles}


def describe_stopped_groups(action: Mapping[str, object], snapshot: Snapshot) -> str:
    """Return a description of the groups that an action stops, or an empty string if it stops no group."""
    key = ObjectKey(str(action.get("namespace")), str(action.get("name")))
    verb = action.get("verb")
    if verb == Verb.SCALE_ROLE:
        set_view = snapshot.find_disaggregatedset(key)
        return (
            ""
            if set_view is None
            else _scale_down_effect(action, role_replicas(set_view).get(str(action.get("role")), 0))
        )
    view = snapshot.find(key)
    if view is None:
        return ""
    match verb:
        case Verb.SCALE:
            return _scale_down_effect(action, view.desired)
        case Verb.RESTART | Verb.UNDO:
            return f"Each of {format_count(view.desired, 'group')} {AGAIN}."
        case Verb.RESTART_GROUP | Verb.RECOVER_GROUP:
            return f"Group {action.get('group')} {AGAIN}."
        case _:
            return ""


def _scale_down_effect(action: Mapping[str, object], now: int) -> str:
    target = decimals.natural(str(action.get("groups")))
    if target is None or target >= now:
        return ""
    if not target:
        return f"All {now} groups are deleted, so no ranks of {action.get('role') or action.get('name')} remain."
    return f"{format_count(now - target, 'group')} of {now} {'is' if now - target == 1 else 'are'} deleted."


def _words(*verbs: Verb) -> str:
    return " ".join(verbs)
