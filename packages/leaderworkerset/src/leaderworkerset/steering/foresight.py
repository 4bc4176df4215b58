"""The effects of applying a manifest to a LeaderWorkerSet: changed fields, and the groups that roll in each step. Pure.

In: the LeaderWorkerSet with its pods and leader StatefulSet, and its changed form. Out: a `Foreseen`, its lines for
users and its document for programs. Lines are limited, however many groups there are.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from statistics import median_low
from typing import Final

import msgspec

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.ordinals import ranges
from leaderworkerset.api import groupname, leaderworkerset
from leaderworkerset.capabilities.inplace import inplace
from leaderworkerset.capabilities.inplace.inplace import InPlace
from leaderworkerset.core.admission import namebudgets, templatewarnings
from leaderworkerset.core.leaderworkerset import budget, revisions, rollingupdate
from leaderworkerset.core.leaderworkerset.budget import Budget
from leaderworkerset.core.leaderworkerset.rollingupdate import Current
from leaderworkerset.steering.fieldchanges import FieldChange, change_lines, field_changes, verdict
from leaderworkerset.steering.forecast import Forecast, Wave, World, forecast
from leaderworkerset.steering.patches import is_paused
from leaderworkerset.views.document import VERSION
from leaderworkerset.views.groups import Group, View, groups_named, view
from leaderworkerset.views.wording import counted, duration

WAVES_SHOWN: Final = 12
"""The maximum number of lines for steps; documents for programs have all of them."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A LeaderWorkerSet with its groups, and its leader StatefulSet if that exists."""

    view: View
    statefulset: JSONObject | None = None


class Foreseen(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of a change of one LeaderWorkerSet. `startup` is how long its groups took to start, if known.

    If it `rolls`, `kept` groups have the desired revision already: an incomplete update is reverted.
    """

    name: str
    is_new: bool
    rolls: bool
    kept: int
    is_paused: bool
    changes: tuple[FieldChange, ...]
    size: int
    budget: Budget
    forecast: Forecast
    startup: timedelta | None
    samples: int
    exhausted: tuple[Group, ...] = ()
    """The groups without remaining restarts."""
    in_place: int = 0
    """The number of groups that keep their pods."""
    obstacle: str = ""
    """The first field that prevents the update of groups in place."""
    is_barred: bool = False
    """Whether groups may only be updated in place, so that the obstacle blocks the rollout."""
    warnings: tuple[str, ...] = ()
    """The warnings about names that fit only by chance, and about ignored labels of templates."""
    is_open: bool = False
    """Whether the Deployment controller determines the order of groups, so that no steps are predicted."""

    @property
    def takes(self) -> timedelta | None:
        """Return how long all waves that create groups take, if that can be estimated."""
        making = sum(bool(wave.groups) for wave in self.forecast.waves)
        return None if self.startup is None else self.startup * making


def foresee(before: Situation | None, after: JSONObject) -> Foreseen:
    """Return the effects of changing the LeaderWorkerSet to `after`; `before` is None if it does not exist yet.

    Raise ValueError for values that the controller could not use, or for too many groups.
    """
    lws = leaderworkerset.decode(after)
    limits = budget.read(lws.spec)
    old = before.view.object if before else None
    content = revisions.build_data(after)
    rolls = old is not None and revisions.build_data(old) != content
    starts = startups(before.view) if before else []
    is_open = groupname.is_hash_set(after)
    world = World(Current(0, 0, "")) if is_open else _world(before, revisions.content_hash(content) if rolls else "")
    way = inplace.read(meta.annotations(after)) if rolls and not is_open else InPlace.OFF
    obstacle = _obstacle(old, after) if old is not None and way.is_wanted else ""
    is_barred = bool(obstacle) and way.forbids_recreation
    if is_open or is_barred:
        future = Forecast(waves=(), held=world.members.bit_count(), is_stuck=False)
    else:
        future = forecast(limits, world, is_new_revision=rolls)
    staying = world.ready & ~world.updated if way.is_wanted and not obstacle else 0
    return Foreseen(
        name=meta.name(after),
        is_new=old is None,
        rolls=rolls,
        kept=world.updated.bit_count() if rolls else 0,
        is_paused=is_paused(after),
        changes=() if old is None else tuple(field_changes(_read(old), _read(after))),
        size=lws.size,
        budget=limits,
        forecast=future,
        is_open=is_open,
        warnings=(*namebudgets.warnings(lws), *templatewarnings.warnings(lws)),
        in_place=sum(staying >> index & 1 for wave in future.waves for index in wave.groups),
        obstacle=obstacle,
        is_barred=is_barred,
        exhausted=tuple(group for group in before.view.groups if group.is_exhausted) if before else (),
        startup=median_low(starts) if starts else None,
        samples=len(starts),
    )


def startups(shown: View) -> list[timedelta]:
    """Return how long groups took from the creation of their leader until every rank was ready, without restarts."""
    return [length for group in shown.groups if (length := _startup(group)) is not None]


def lines(found: Foreseen) -> list[str]:
    """Return the effects as text for people."""
    told = [f"{found.name}: {verdict(found.changes, is_new=found.is_new)}", *change_lines(found.changes)]
    return [
        *told,
        _summary(found),
        *_in_place(found),
        *_steps(found),
        *_exhausted(found),
        *_bounds(found),
        *_warnings(found),
    ]


def document(found: Foreseen) -> JSONObject:
    """Return the document with stable field names, as `-o json` prints it."""
    takes = found.takes
    return {
        "apiVersion": VERSION,
        "kind": "RolloutPlan",
        "leaderWorkerSet": found.name,
        "created": found.is_new,
        "newRevision": found.rolls,
        "paused": found.is_paused,
        "changes": [{"field": change.path, "before": change.before, "after": change.after} for change in found.changes],
        "steps": [
            {"groups": sorted(wave.groups), "extraGroups": wave.extra, "availableGroups": wave.available}
            for wave in found.forecast.waves
        ],
        "inPlacePods": found.in_place * found.size,
        "recreatedPods": _recreated(found) * found.size,
        "notInPlace": found.obstacle,
        "heldGroups": found.forecast.held,
        "peakExtraPods": found.forecast.extra * found.size,
        "lowestAvailableGroups": found.forecast.available,
        "estimatedSeconds": None if takes is None else int(takes.total_seconds()),
        "exhaustedGroups": [group.name for group in found.exhausted],
        "endsByItself": not found.forecast.is_stuck,
        "warnings": list(found.warnings),
    }


def _read(obj: JSONObject) -> JSONObject:
    """Return a LeaderWorkerSet with its template as the controller reads it: empty fields make no difference."""
    content = revisions.build_content(obj)["spec"]
    return revisions.restore(obj, {"data": {"spec": content}})


def _world(before: Situation | None, wanted: str) -> World:
    """Return the current groups; `wanted` is the key of the revision after the change, empty if it stays."""
    if before is None:
        return World(Current(0, 0, ""))
    shown, found = before.view, before.statefulset
    key = wanted or (groupname.revision(found) if found else "")
    existing = [group for group in shown.groups if group.leader and group.leader.object is not None]
    current = Current(shown.desired, 0, str(shown.desired)) if found is None else rollingupdate.position(found)
    return World(
        current,
        members=_bits(existing),
        ready=_bits([group for group in existing if group.is_ready]),
        updated=_bits([group for group in existing if not key or group.revision == key]),
        exhausted=_bits([group for group in existing if group.is_over]),
    )


def _obstacle(old: JSONObject, new: JSONObject) -> str:
    """Return the first field for which groups cannot be updated in place; empty if there is none."""
    if meta.spec(new).get("scheduling") is not None:
        return "spec.scheduling"
    return inplace.obstacle(*(revisions.build_content(one)["spec"] for one in (old, new)))


def _bits(groups: list[Group]) -> int:
    return sum(1 << group.index for group in groups)


def _startup(group: Group) -> timedelta | None:
    if not group.is_ready or any(rank.restarts for rank in group.ranks):
        return None
    began = min((rank.created for rank in group.ranks if rank.created), default="")
    ends = [
        str((meta.find_condition(rank.object, "Ready") or {}).get("lastTransitionTime") or "")
        for rank in group.ranks
        if rank.object is not None
    ]
    if not began or not ends or not all(ends):
        return None
    return max(datetime.fromisoformat(max(ends)) - datetime.fromisoformat(began), timedelta())


def _summary(found: Foreseen) -> str:
    making = sum(len(wave.groups) for wave in found.forecast.waves)
    if found.is_new:
        return f"{counted(found.budget.replicas, 'group')} of {counted(found.size, 'pod')} would be created"
    if found.is_open and found.rolls:
        bounds = f"at most {found.budget.unavailable} unavailable, at most {found.budget.surge} more than wanted"
        return f"a new revision: the Deployment controller replaces all groups, in an order of its own; {bounds}"
    if found.is_open:
        return f"no new revision: {counted(found.budget.replicas, 'group')} of {counted(found.size, 'pod')} wanted"
    if not found.forecast.waves:
        return "no group is created or removed" + (_held(found) if found.rolls else "")
    has = "has" if found.kept == 1 else "have"
    back = f"the revision that {counted(found.kept, 'group')} {has} already" if found.kept else "a new revision"
    reason = back if found.rolls else "no new revision"
    done = "updated" if found.in_place else "created"
    return f"{reason}: {counted(making, 'group')} of {counted(found.size, 'pod')} would be {done}{_held(found)}"


def _held(found: Foreseen) -> str:
    if not found.forecast.held:
        return ""
    if found.is_barred:
        return f"; {counted(found.forecast.held, 'group')} would keep the old revision"
    why = "the rollout is paused" if found.is_paused else f"partition {found.budget.partition}"
    return f"; {counted(found.forecast.held, 'group')} would keep the old revision ({why})"


def _recreated(found: Foreseen) -> int:
    return sum(len(wave.groups) for wave in found.forecast.waves) - found.in_place


def _in_place(found: Foreseen) -> Iterator[str]:
    """Yield how many pods stay, or the field that prevents it."""
    if found.is_barred:
        yield f"in place: impossible, and the rollout is held: {found.obstacle} cannot change in a pod that runs"
    elif found.obstacle:
        yield f"in place: 0 pods: {found.obstacle} cannot change in a pod that runs"
    elif found.in_place:
        yield f"in place: {counted(found.in_place * found.size, 'pod')}, recreated: {_recreated(found) * found.size}"


def _steps(found: Foreseen) -> Iterator[str]:
    waves = found.forecast.waves
    for number, wave in enumerate(waves, start=1):
        if number < WAVES_SHOWN or number == len(waves):
            yield f"  step {number}: {_made(wave)}; {wave.available} available{_extra(wave, found.size)}"
        elif number == WAVES_SHOWN:
            yield f"  … {counted(len(waves) - WAVES_SHOWN, 'more step')}"


def _exhausted(found: Foreseen) -> Iterator[str]:
    """Yield the effect on groups without remaining restarts: they are replaced in their turn, scaled away, or stay."""
    made = {index for wave in found.forecast.waves for index in wave.groups}
    if found.is_open and found.rolls:
        made = {group.index for group in found.exhausted}
    in_turn = [group.name for group in found.exhausted if group.index in made]
    staying = [
        group.name for group in found.exhausted if group.index not in made and group.index < found.budget.replicas
    ]
    if in_turn:
        yield (
            f"no restart left: {groups_named(in_turn)}, passed over and outside maxUnavailable until replaced; read why it failed"
            f" before: lws explain {found.name}"
        )
    if staying:
        yield f"no restart left: {groups_named(staying)}, which would stay terminated; to let it try again: lws recover {found.name}"


def _made(wave: Wave) -> str:
    if not wave.groups:
        return "groups that are not wanted any more go"
    return f"group{'s' if len(wave.groups) > 1 else ''} {ranges(wave.groups)}"


def _extra(wave: Wave, size: int) -> str:
    return f", {counted(wave.extra * size, 'extra pod')}" if wave.extra else ""


def _bounds(found: Foreseen) -> Iterator[str]:
    if found.forecast.is_stuck:
        yield "  it would not end by itself: groups that are not ready use up what may be unavailable"
    if found.forecast.available is None or found.is_new:
        return
    pods = counted(found.forecast.extra * found.size, "extra pod")
    yield f"at most {pods}; at least {found.forecast.available} of {counted(found.budget.replicas, 'group')} available"
    if (takes := found.takes) is not None and found.startup is not None:
        yield f"about {duration(takes)}: {counted(found.samples, 'group')} started in {duration(found.startup)} each"


def _warnings(found: Foreseen) -> Iterator[str]:
    yield from (f"warning: {text}" for text in found.warnings)


def situation(lws: JSONObject, pods: list[JSONObject], found: JSONObject | None) -> Situation:
    """Return the situation of a LeaderWorkerSet whose objects were read."""
    return Situation(view=view(lws, pods), statefulset=found)
