"""Explains why the limit of unavailable groups delays evictions of a group. Pure.

The annotation of a LeaderWorkerSet sets the maximum number of unavailable groups. The manager's default is not
available in this module. Without the annotation, a group with a disruption budget of 0 cannot be evicted.
"""

from collections.abc import Iterable

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname, labels
from leaderworkerset.api.groupname import GroupName, parse_group_name
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.decisions.nodemaintenance import OPEN_BUDGET, DisruptionSettings, disruption_limit
from lwsctl.model.leaderworkerset import View
from lwsctl.views.wording import format_count, join_names

NAMED = 5
"""The maximum number of groups that are listed."""


def uses_only_budgets(view: View) -> bool:
    """Return whether only disruption budgets, and no annotation, define the limit."""
    has_own = labels.DISRUPTION_BUDGET in meta.annotations(view.object)
    return not has_own and any(group.is_ready for group in view.groups) and bool(_unavailable_groups(view))


def blocking_reason(view: View, group: GroupName | None, budgets: Iterable[JSONObject] = ()) -> str:
    """Return the reason why a group cannot be evicted, or an empty string.

    If `group` is None, all ready groups are checked.
    """
    annotations, unready = meta.annotations(view.object), _unavailable_groups(view)
    if labels.DISRUPTION_BUDGET not in annotations:
        own = [budget for budget in budgets if group in (None, parse_group_name(groupname.group_label(budget)))]
        is_closed = own and all(
            meta.is_controlled(budget, view.object) and meta.spec(budget).get("minAvailable") != OPEN_BUDGET
            for budget in own
        )
        return f"its eviction is delayed, because {_phrase(unready)}" if unready and is_closed else ""
    try:
        limit = disruption_limit(DisruptionSettings(), annotations, decode(view.object).spec)
    except ValueError:
        return ""
    if limit == 0:
        return f"it cannot be evicted, because {labels.DISRUPTION_BUDGET} is {annotations[labels.DISRUPTION_BUDGET]}"
    if limit is None or len(unready) < limit:
        return ""
    return f"its eviction is delayed, because {_phrase(unready)} and at most {format_count(limit, 'group')} may be unavailable"


def _unavailable_groups(view: View) -> list[str]:
    return [f"{view.name}/{group.name}" for group in view.groups if not group.is_ready]


def _phrase(names: list[str]) -> str:
    return f"{join_names(names, NAMED)} {'is' if len(names) == 1 else 'are'} not ready"
