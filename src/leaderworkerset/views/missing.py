"""What is still missing until a LeaderWorkerSet is as it is wanted: a sentence, or None when nothing is. Pure."""

from kuberuntime.objects import meta
from leaderworkerset.views.groups import View
from leaderworkerset.views.reasons import reasons
from leaderworkerset.views.wording import counted


def for_ready(view: View | None) -> str | None:
    """Return what is missing until the newest spec is in place and all groups are ready."""
    if view is None:
        return "it is gone"
    if view.is_ready:
        return None
    return ready_groups(view)


def ready_groups(view: View) -> str:
    """Return how many groups are ready, and the first reason why others are not."""
    return f"{view.ready} of {counted(view.desired, 'group')} ready{reasons(view)}"


def for_replicas(view: View | None, count: int) -> str | None:
    """Return what is missing until exactly `count` groups are ready."""
    if view is None:
        return "it is gone"
    return None if view.ready == count else f"{counted(view.ready, 'group')} ready, not {count}{reasons(view)}"


def for_condition(view: View | None, kind: str, status: str) -> str | None:
    """Return what is missing until a condition of the newest spec has the status (R-STAT-15)."""
    if view is None:
        return "it is gone"
    condition = meta.find_condition(view.object, kind) or {}
    current = condition.get("observedGeneration") == meta.generation(view.object)
    if condition.get("status", "False") == status and (current or status != "True"):
        return None
    return f"condition {kind} is {condition.get('status', 'not there')}{reasons(view)}"


def for_deletion(view: View | None) -> str | None:
    """Return what is missing until the LeaderWorkerSet is deleted."""
    return None if view is None else "it is still there"
