"""Predicts the changed fields and rollout steps if a manifest is applied to a LeaderWorkerSet. Pure.

The input is the LeaderWorkerSet with its pods and leader StatefulSet, and the changed LeaderWorkerSet. The output is
an `ApplyForecast`, as text and as a machine-readable document. The number of lines is limited, regardless of the
number of groups.
"""

from collections.abc import Iterator
from datetime import timedelta
from statistics import median_low
from typing import Final

import msgspec

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.ordinals import ranges
from kuberuntime.texts.fieldchanges import FieldChange, change_lines, field_changes, summary
from leaderworkerset.api import groupname, leaderworkerset
from leaderworkerset.decisions.admissionchecks import leaderworkerset_warnings
from leaderworkerset.decisions.revisioncontent import (
    build_revision_content,
    build_revision_data,
    restore_revision,
    revision_hash,
)
from leaderworkerset.decisions.rolloutsteps import (
    Budget,
    InPlace,
    StatefulSetProgress,
    in_place_obstacle,
    read_in_place,
    read_rollout_budget,
    rollout_position,
)
from lwsctl.model.groups import Group
from lwsctl.model.leaderworkerset import View
from lwsctl.rollout.forecast import Forecast, RolloutStage, RolloutState, forecast
from lwsctl.rollout.patches import is_paused
from lwsctl.views.document import VERSION
from lwsctl.views.wording import duration, format_count, format_groups

WAVES_SHOWN: Final = 12
"""The maximum number of steps in text output. Machine-readable output contains all steps."""


class ApplyForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of a change to one LeaderWorkerSet. `startup` is the start duration of its groups, if known.

    If `has_rollout` is set, `kept_groups` groups already have the desired revision, because an incomplete update is reverted.
    """

    name: str
    is_new: bool
    has_rollout: bool
    kept_groups: int
    is_paused: bool
    changes: tuple[FieldChange, ...]
    size: int
    budget: Budget
    forecast: Forecast
    startup: timedelta | None
    samples: int
    exhausted: tuple[Group, ...] = ()
    """The groups that have no remaining restarts."""
    in_place: int = 0
    """The number of groups whose pods will not be recreated."""
    obstacle: str = ""
    """The first field that prevents an update in place."""
    is_barred: bool = False
    """Whether only in-place updates are permitted. The obstacle then blocks the rollout."""
    warnings: tuple[str, ...] = ()
    """Warnings about names that match by coincidence, and about ignored labels in templates."""
    is_open: bool = False
    """Whether the Deployment controller determines the order of groups. Steps can then not be predicted."""

    @property
    def duration(self) -> timedelta | None:
        """Return the duration of all waves that create groups, or None if it cannot be estimated."""
        making = sum(bool(wave.groups) for wave in self.forecast.waves)
        return None if self.startup is None else self.startup * making


def forecast_apply(before: View | None, after: JSONObject) -> ApplyForecast:
    """Return the effects of changing the LeaderWorkerSet to `after`. If it does not exist, `before` is None.

    Raise ValueError for values that the controller could not use, or for too many groups.
    """
    lws = leaderworkerset.decode(after)
    limits = read_rollout_budget(lws.spec)
    old = before.object if before else None
    content = build_revision_data(after)
    rolls = old is not None and build_revision_data(old) != content
    starts = startup_times(before) if before else []
    is_open = groupname.uses_random_keys(after)
    world = (
        RolloutState(StatefulSetProgress(0, 0, ""))
        if is_open
        else _current_state(before, revision_hash(content) if rolls else "")
    )
    way = read_in_place(meta.annotations(after)) if rolls and not is_open else InPlace.OFF
    obstacle = _obstacle(old, after) if old is not None and way.is_wanted else ""
    is_barred = bool(obstacle) and way.forbids_recreation
    if is_open or is_barred:
        future = Forecast(waves=(), held_groups=world.members.bit_count(), is_stuck=False)
    else:
        future = forecast(limits, world, is_new_revision=rolls)
    staying = world.ready & ~world.updated if way.is_wanted and not obstacle else 0
    return ApplyForecast(
        name=meta.name(after),
        is_new=old is None,
        has_rollout=rolls,
        kept_groups=world.updated.bit_count() if rolls else 0,
        is_paused=is_paused(after),
        changes=() if old is None else tuple(field_changes(_parse(old), _parse(after))),
        size=lws.size,
        budget=limits,
        forecast=future,
        is_open=is_open,
        warnings=tuple(leaderworkerset_warnings(lws)),
        in_place=sum(staying >> index & 1 for wave in future.waves for index in wave.groups),
        obstacle=obstacle,
        is_barred=is_barred,
        exhausted=tuple(group for group in before.groups if group.is_exhausted) if before else (),
        startup=median_low(starts) if starts else None,
        samples=len(starts),
    )


def startup_times(lws_view: View) -> list[timedelta]:
    """Return the start durations of groups without restarts. They end when all ranks are ready."""
    return [length for group in lws_view.groups if (length := _startup_time(group)) is not None]


def lines(plan: ApplyForecast) -> list[str]:
    """Return the effects as text."""
    head = [f"{plan.name}: {summary(plan.changes, is_new=plan.is_new)}", *change_lines(plan.changes)]
    return [
        *head,
        _summary(plan),
        *_in_place_lines(plan),
        *_step_lines(plan),
        *_exhausted_effects(plan),
        *_limit_lines(plan),
        *(f"warning: {text}" for text in plan.warnings),
    ]


def document(plan: ApplyForecast) -> JSONObject:
    """Return the effects with stable field names, as `-o json` prints them."""
    takes = plan.duration
    return {
        "apiVersion": VERSION,
        "kind": "RolloutPlan",
        "leaderWorkerSet": plan.name,
        "created": plan.is_new,
        "newRevision": plan.has_rollout,
        "paused": plan.is_paused,
        "changes": [{"field": change.path, "before": change.before, "after": change.after} for change in plan.changes],
        "steps": [
            {"groups": sorted(wave.groups), "extraGroups": wave.surge, "availableGroups": wave.available_groups}
            for wave in plan.forecast.waves
        ],
        "inPlacePods": plan.in_place * plan.size,
        "recreatedPods": _recreated_groups(plan) * plan.size,
        "notInPlace": plan.obstacle,
        "heldGroups": plan.forecast.held_groups,
        "peakExtraPods": plan.forecast.max_surge * plan.size,
        "lowestAvailableGroups": plan.forecast.min_available,
        "estimatedSeconds": None if takes is None else int(takes.total_seconds()),
        "exhaustedGroups": [group.name for group in plan.exhausted],
        "endsByItself": not plan.forecast.is_stuck,
        "warnings": list(plan.warnings),
    }


def _parse(obj: JSONObject) -> JSONObject:
    """Parse a LeaderWorkerSet and its template as the controller does. Empty fields are ignored."""
    content = build_revision_content(obj)["spec"]
    return restore_revision(obj, {"data": {"spec": content}})


def _current_state(before: View | None, revision: str) -> RolloutState:
    """Return the current groups. `revision` is the revision key after the change, or empty if it is not changed."""
    if before is None:
        return RolloutState(StatefulSetProgress(0, 0, ""))
    key = revision or (groupname.revision_key(before.leaders) if before.leaders else "")
    existing = [group for group in before.groups if group.leader and group.leader.object is not None]
    desired = before.desired
    current = (
        StatefulSetProgress(desired, 0, str(desired)) if before.leaders is None else rollout_position(before.leaders)
    )
    return RolloutState(
        current._replace(revision="", is_behind=False),  # the steps of a forecast do not have them
        members=_bits(existing),
        ready=_bits([group for group in existing if group.is_ready]),
        updated=_bits([group for group in existing if not key or group.revision == key]),
        exhausted=_bits([group for group in existing if group.is_over]),
    )


def _obstacle(old: JSONObject, new: JSONObject) -> str:
    """Return the first field that prevents an in-place update, or an empty string if there is none."""
    if meta.spec(new).get("scheduling") is not None:
        return "spec.scheduling"
    return in_place_obstacle(*(build_revision_content(obj)["spec"] for obj in (old, new)))


def _bits(groups: list[Group]) -> int:
    return sum(1 << group.index for group in groups)


def _startup_time(group: Group) -> timedelta | None:
    began = timestamps.read(min((rank.created for rank in group.ranks if rank.created), default=""))
    if group.ready_since is None or began is None or group.restarts:
        return None
    return max(group.ready_since - began, timedelta())


def _summary(plan: ApplyForecast) -> str:
    making = sum(len(wave.groups) for wave in plan.forecast.waves)
    if plan.is_new:
        return f"{format_count(plan.budget.replicas, 'group')} of {format_count(plan.size, 'pod')} would be created"
    if plan.is_open and plan.has_rollout:
        bounds = f"at most {plan.budget.unavailable} unavailable, at most {plan.budget.surge} extra"
        return f"a new revision: the Deployment controller replaces all groups in any order; {bounds}"
    if plan.is_open:
        return f"no new revision: {format_count(plan.budget.replicas, 'group')} of {format_count(plan.size, 'pod')} desired"
    if not plan.forecast.waves:
        return "no groups would be created or deleted" + (_partition_note(plan) if plan.has_rollout else "")
    back = (
        f"the revision of {format_count(plan.kept_groups, 'existing group')}" if plan.kept_groups else "a new revision"
    )
    reason = back if plan.has_rollout else "no new revision"
    action = "updated" if plan.in_place else "created"
    return f"{reason}: {format_count(making, 'group')} of {format_count(plan.size, 'pod')} would be {action}{_partition_note(plan)}"


def _partition_note(plan: ApplyForecast) -> str:
    if not plan.forecast.held_groups:
        return ""
    if plan.is_barred:
        return f"; {format_count(plan.forecast.held_groups, 'group')} would remain at the previous revision"
    why = "the rollout is paused" if plan.is_paused else f"partition {plan.budget.partition}"
    return f"; {format_count(plan.forecast.held_groups, 'group')} would remain at the previous revision ({why})"


def _recreated_groups(plan: ApplyForecast) -> int:
    return sum(len(wave.groups) for wave in plan.forecast.waves) - plan.in_place


def _in_place_lines(plan: ApplyForecast) -> Iterator[str]:
    """Yield the number of pods that are not recreated, or the field that prevents an update in place."""
    if plan.is_barred:
        yield f"an update in place is not possible, because {plan.obstacle} of a running pod is immutable; the rollout would be blocked"
    elif plan.obstacle:
        yield f"no pods would be updated in place, because {plan.obstacle} of a running pod is immutable"
    elif plan.in_place:
        yield f"{format_count(plan.in_place * plan.size, 'pod')} would be updated in place, and {_recreated_groups(plan) * plan.size} recreated"


def _step_lines(plan: ApplyForecast) -> Iterator[str]:
    waves = plan.forecast.waves
    for number, wave in enumerate(waves, start=1):
        if number < WAVES_SHOWN or number == len(waves):
            yield f"  step {number}: {_wave_text(wave)}; {wave.available_groups} available{_surge_text(wave, plan.size)}"
        elif number == WAVES_SHOWN:
            yield f"  … {format_count(len(waves) - WAVES_SHOWN, 'more step')}"


def _exhausted_effects(plan: ApplyForecast) -> Iterator[str]:
    """Yield the effects on groups without remaining restarts. These groups are replaced, deleted or kept."""
    indexes = {index for wave in plan.forecast.waves for index in wave.groups}
    if plan.is_open and plan.has_rollout:
        indexes = {group.index for group in plan.exhausted}
    in_turn = [group.name for group in plan.exhausted if group.index in indexes]
    staying = [
        group.name for group in plan.exhausted if group.index not in indexes and group.index < plan.budget.replicas
    ]
    if in_turn:
        yield (
            f"no restarts remain for {format_groups(in_turn)} (not counted in maxUnavailable until replaced); to find the cause, run `lws explain {plan.name}`"
        )
    if staying:
        yield f"no restarts remain for {format_groups(staying)}, which would remain terminated; to recover, run `lws recover {plan.name}`"


def _wave_text(wave: RolloutStage) -> str:
    if not wave.groups:
        return "surplus groups are deleted"
    return f"group{'s' if len(wave.groups) > 1 else ''} {ranges(wave.groups)}"


def _surge_text(wave: RolloutStage, size: int) -> str:
    return f", {format_count(wave.surge * size, 'extra pod')}" if wave.surge else ""


def _limit_lines(plan: ApplyForecast) -> Iterator[str]:
    if plan.forecast.is_stuck:
        yield "  it would not complete, because groups that are not ready count as unavailable"
    if plan.forecast.min_available is None or plan.is_new:
        return
    pods = format_count(plan.forecast.max_surge * plan.size, "extra pod")
    yield f"at most {pods}; at least {plan.forecast.min_available} of {format_count(plan.budget.replicas, 'group')} available"
    if (takes := plan.duration) is not None and plan.startup is not None:
        yield f"about {duration(takes)}: {format_count(plan.samples, 'group')} started in {duration(plan.startup)} each"
