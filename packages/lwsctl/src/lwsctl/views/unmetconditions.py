"""Describes what is missing until a set meets a condition. Checks return a sentence or None. Pure."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from kuberuntime.objects import decimals, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts import jsonpath
from kuberuntime.texts.jsonpath import JSONPathError, Step
from leaderworkerset.api import labels, runsettings
from leaderworkerset.api.conditions import AVAILABLE, COMPLETE, WAIT_WORDS, ConditionOutcome
from leaderworkerset.api.groupname import GroupEnd
from lwsctl.model.disaggregatedset import SetView, Shown, leaderworkersets
from lwsctl.model.leaderworkerset import View
from lwsctl.views.outcome import not_ended
from lwsctl.views.reasons import behind, reasons
from lwsctl.views.wording import format_count

READY_FOR: Final = timedelta(seconds=10)
"""The time for which a group must be ready after a failure before a wait finishes."""

Check: TypeAlias = Callable[[Shown | None], str | None]
"""A function that returns a description of what is missing, or None if the condition is met."""

ASSIGNMENT: Final = re.compile(r"(?P<path>\{.*\}|.+?)(?:(?<![=!<>])=(?!=)(?P<value>.*))?")
"""A field path and the expected value. `==` is part of the path."""

USABLE: Final = (
    f"{', '.join(WAIT_WORDS)}, delete, replicas=N (ready groups), condition=TYPE[=STATUS], or jsonpath={{PATH}}[=VALUE]"
)


def parse(condition: str) -> Check:
    """Parse the condition to wait for. Raise ValueError if it is unknown."""
    word, _, value = condition.partition("=")
    if word in WAIT_WORDS and not value:
        return outcome_check(WAIT_WORDS[word])
    if word == "delete" and not value:
        return missing_for_deletion
    replicas = decimals.natural(value)
    if word == "replicas" and replicas is not None:
        return lambda view: missing_for_replicas(view, replicas)
    if word == "condition" and value:
        kind, _, status = value.partition("=")
        return lambda view: missing_for_condition(view, kind, status or "True")
    if word == "jsonpath" and (match := ASSIGNMENT.fullmatch(value)):
        path = jsonpath.normalize(match["path"])
        steps = jsonpath.parse_path(path)
        return lambda view: missing_for_path(view, path, steps, match["value"])
    raise ValueError(f"{condition}: use {USABLE}")


def outcome_check(outcome: ConditionOutcome) -> Check:
    """Return the check for a named condition. For two of the conditions, the description includes groups."""
    if outcome is AVAILABLE:
        return missing_for_ready
    if outcome is COMPLETE:
        return missing_for_completion
    return lambda view: missing_for_condition(view, outcome.type, "True")


def missing_for_ready(view: Shown | None) -> str | None:
    """Return what is missing until the latest spec is applied and all groups are ready."""
    if view is None:
        return "it no longer exists"
    if view.is_ready:
        return None
    return ready_groups(view)


def condition_check(condition: str, now: Callable[[], datetime], least: timedelta = READY_FOR) -> Check:
    """Return the check for a condition.

    After a failure, `ready` must persist. Raise ValueError for unknown conditions.
    """
    check = parse(condition)
    if WAIT_WORDS.get(condition) is not AVAILABLE:
        return check
    return lambda view: check(view) or missing_for_lasting(view, now(), least)


def missing_for_lasting(
    view: Shown | None, now: datetime, least: timedelta = READY_FOR, *, kept_back: int = 0
) -> str | None:
    """Return the first group that failed and has not been ready for `least` and longer than its longest run.

    If `least` is 0, it is sufficient that the group is currently ready. The first `kept_back` groups are ignored.
    """
    views = () if view is None or not least else leaderworkersets([view])
    for own in views:
        for group in own.groups:
            is_wanted = kept_back <= group.index < own.desired
            if is_wanted and group.crashes is not None and not group.crashes.are_over(now, least):
                return f"group {group.name} of {own.name} failed, and has not been ready for long enough"
    return None


def ready_groups(view: Shown) -> str:
    """Return the number of ready groups, and the first reason why a group is not ready."""
    if isinstance(view, SetView):
        roles = ", ".join(
            f"{role.name} {role.ready} of {format_count(role.desired, 'group')} ready" for role in view.roles
        )
        return f"{roles}; rollout {view.rollout}{_first_reason(view)}"
    return f"{view.ready_by_pods} of {format_count(view.desired, 'group')} ready{reasons(view) or _outdated_status_note(view)}"


def missing_for_completion(view: Shown | None) -> str | None:
    """Return what is missing until a LeaderWorkerSet that runs to completion is complete."""
    if view is None:
        return "it no longer exists"
    if isinstance(view, SetView):
        return "a DisaggregatedSet does not complete"
    if not runsettings.read(meta.annotations(view.object)).runs_to_completion:
        return f"it does not run to completion, because the annotation {labels.RUN_TO_COMPLETION} is missing"
    if view.is_complete:
        return None
    late = [str(group.name) for group in view.groups if group.end is GroupEnd.LATE]
    failed = f"; stopped at the deadline: {', '.join(late)}" if late else ""
    return f"{view.completed} of {format_count(view.desired, 'group')} complete{failed}{_progress(view) or _not_ended(view)}"


def _progress(view: View) -> str:
    """Return the progress of a LeaderWorkerSet without the remaining time. Lines then change less often."""
    advances = [(group, group.progress) for group in view.groups if group.end is None and group.progress is not None]
    texts = [
        f"group {group.name} at step {progress.step}" + (f" of {progress.total}" if progress.total else "")
        for group, progress in advances
    ]
    return f"; {texts[0]}" if texts else ""


def _not_ended(view: View) -> str:
    text = not_ended(view)
    return f"; {text}" if text else ""


def missing_for_replicas(view: Shown | None, count: int) -> str | None:
    """Return what is missing until exactly `count` groups are ready."""
    if view is None:
        return "it no longer exists"
    if view.ready == count:
        return None
    return f"{format_count(view.ready, 'group')} ready, not {count}{_first_reason(view)}{_outdated_status_note(view)}"


def _outdated_status_note(view: Shown) -> str:
    """Return a note if the status does not yet match the pods."""
    text = "" if isinstance(view, SetView) else behind(view)
    return f"; {text}" if text else ""


def _first_reason(view: Shown) -> str:
    """Return the first reason of an unready rank in the LeaderWorkerSets of a DisaggregatedSet."""
    if isinstance(view, SetView):
        return next((why for part in view.parts if (why := reasons(part))), "")
    return reasons(view)


def missing_for_condition(view: Shown | None, kind: str, status: str) -> str | None:
    """Return what is missing until a condition has the status for the latest spec, ignoring case (R-STAT-15)."""
    if view is None:
        return "it no longer exists"
    conditions = meta.status(view.object).get("conditions") or []
    condition: JSONObject = next(
        (candidate for candidate in conditions if str(candidate.get("type")).lower() == kind.lower()), {}
    )
    current = condition.get("observedGeneration") == meta.generation(view.object)
    if str(condition.get("status", "False")).lower() == status.lower() and (current or status.lower() != "true"):
        return None
    stale = "" if current or not condition else " of a previous spec"
    state = f"is {condition['status']}" if "status" in condition else "does not exist"
    return f"condition {kind} {state}{stale}{_first_reason(view)}"


def missing_for_path(view: Shown | None, path: str, steps: Sequence[Step], value: str | None) -> str | None:
    """Return what is missing until a field of the object exists or has the expected value."""
    if view is None:
        return "it no longer exists"
    try:
        texts = [jsonpath.format_result(result) for result in jsonpath.select(steps, view.object)]
    except JSONPathError as error:
        return f"{path}: {error}"
    if not texts:
        return f"{path} does not exist{_first_reason(view)}"
    if value is None or texts == [value.strip("'\"")]:
        return None
    return f"{path} is {' '.join(texts)}, not {value}{_first_reason(view)}"


def missing_for_deletion(view: Shown | None) -> str | None:
    """Return what is missing until the set is deleted."""
    return None if view is None else "it still exists"
