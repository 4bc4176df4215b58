"""What is missing until a set has the awaited state: a sentence, or None if nothing is. Pure."""

from collections.abc import Callable
from typing import TypeAlias

from kuberuntime.objects import decimals, meta
from leaderworkerset.views.disaggregation import SetView, Shown
from leaderworkerset.views.reasons import reasons
from leaderworkerset.views.wording import counted

Check: TypeAlias = Callable[[Shown | None], str | None]
"""Returns what is missing, as text; None if the wait is over."""


def parse(condition: str) -> Check:
    """Read the condition to wait for; raise ValueError if it is unknown."""
    word, _, value = condition.partition("=")
    if word == "ready" and not value:
        return for_ready
    if word == "delete" and not value:
        return for_deletion
    replicas = decimals.natural(value)
    if word == "replicas" and replicas is not None:
        return lambda view: for_replicas(view, replicas)
    if word == "condition" and value:
        kind, _, status = value.partition("=")
        return lambda view: for_condition(view, kind, status or "True")
    raise ValueError(f"{condition}: use ready, delete, replicas=N, or condition=TYPE[=STATUS]")


def for_ready(view: Shown | None) -> str | None:
    """Return what is missing until the newest spec is applied and all groups are ready."""
    if view is None:
        return "it is gone"
    if view.is_ready:
        return None
    return ready_groups(view)


def ready_groups(view: Shown) -> str:
    """Return how many groups are ready, and the first reason why others are not."""
    if isinstance(view, SetView):
        roles = ", ".join(f"{role.name} {role.ready} of {counted(role.desired, 'group')} ready" for role in view.roles)
        return f"{roles}; rollout {view.rollout}{_first_reason(view)}"
    return f"{view.ready} of {counted(view.desired, 'group')} ready{reasons(view)}"


def for_replicas(view: Shown | None, count: int) -> str | None:
    """Return what is missing until exactly `count` groups are ready."""
    if view is None:
        return "it is gone"
    return None if view.ready == count else f"{counted(view.ready, 'group')} ready, not {count}{_first_reason(view)}"


def _first_reason(view: Shown) -> str:
    """Return the first reason of a rank that is not ready, of all LeaderWorkerSets of a set."""
    if isinstance(view, SetView):
        return next((why for part in view.parts if (why := reasons(part.view))), "")
    return reasons(view)


def for_condition(view: Shown | None, kind: str, status: str) -> str | None:
    """Return what is missing until a condition of the newest spec has the status (R-STAT-15)."""
    if view is None:
        return "it is gone"
    condition = meta.find_condition(view.object, kind) or {}
    current = condition.get("observedGeneration") == meta.generation(view.object)
    if condition.get("status", "False") == status and (current or status != "True"):
        return None
    return f"condition {kind} is {condition.get('status', 'not there')}{_first_reason(view)}"


def for_deletion(view: Shown | None) -> str | None:
    """Return what is missing until the set is deleted."""
    return None if view is None else "it is still there"
