"""Why evictions of a group wait: other groups are away, and no more may be. Pure.

Only the annotation of a LeaderWorkerSet is known here, not the setting of the manager.
"""

from kuberuntime.objects import meta
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import decode
from leaderworkerset.core.disruption import disruptionsettings as settings
from leaderworkerset.core.disruption.disruptionsettings import DisruptionSettings
from leaderworkerset.views.groups import View
from leaderworkerset.views.wording import counted

NAMED = 5
"""The maximum number of groups that are named."""


def blocked(view: View) -> str:
    """Return what keeps the groups that are ready from being evicted, empty if nothing does."""
    annotations = meta.annotations(view.object)
    if labels.DISRUPTION_BUDGET not in annotations:
        return ""
    try:
        limit = settings.limit(DisruptionSettings(), annotations, decode(view.object).spec)
    except ValueError:
        return ""
    away = [f"{view.name}/{group.name}" for group in view.groups if not group.is_ready]
    if limit == 0:
        return f"nothing of it can be evicted: {labels.DISRUPTION_BUDGET} is {annotations[labels.DISRUPTION_BUDGET]}"
    if limit is None or len(away) < limit:
        return ""
    more = f" and {len(away) - NAMED} more" if len(away) > NAMED else ""
    is_are = "is" if len(away) == 1 else "are"
    may = counted(limit, "group")
    return f"evictions of it wait: {', '.join(away[:NAMED])}{more} {is_are} away, and no more than {may} may be"
