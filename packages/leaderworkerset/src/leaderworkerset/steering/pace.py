"""The progress of a rollout, and the duration of the rest at the current pace. Pure.

A group is done once it has the revision of the leader StatefulSet and all its ranks are ready. Groups below the
partition are not part of the rollout.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api import groupname
from leaderworkerset.api.conditions import UPDATE_IN_PROGRESS
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.steering.patches import is_paused, partition
from leaderworkerset.views.document import VERSION
from leaderworkerset.views.groups import GroupName, View, groups_named
from leaderworkerset.views.reasons import reasons
from leaderworkerset.views.wording import counted, duration

BAR: Final = 20
"""The width of the bar in characters."""


class RolloutProgress(Struct, frozen=True, kw_only=True):
    """The progress of a rollout. `done` of `wanted` groups are updated and ready; the partition holds `held` back."""

    name: str
    done: int
    updated: int
    ready: int
    wanted: int
    held: int
    is_complete: bool
    is_paused: bool
    left: timedelta | None
    why: str
    passed: tuple[GroupName, ...] = ()
    """The groups of an older revision without remaining restarts: the rollout replaces them without waiting."""
    exhausted: tuple[GroupName, ...] = ()
    """The groups of the newest revision without remaining restarts: the rollout waits until they are recovered."""

    @property
    def standing(self) -> tuple[int, int, int]:
        """Return the numbers that change while the rollout makes progress."""
        return self.done, self.updated, self.ready


def progress(view: View, statefulset: JSONObject | None, now: datetime) -> RolloutProgress:
    """Measure the rollout of a LeaderWorkerSet by its groups."""
    lws = view.object
    key = groupname.revision(statefulset) if statefulset else ""
    held = min(partition(lws), view.desired)
    rolled = [group for group in view.groups if held <= group.index < view.desired]
    updated = [group for group in rolled if key and group.revision == key]
    done = [group for group in updated if group.is_ready or group.end is GroupEnd.COMPLETE]
    is_observed = meta.is_observed(lws)
    wanted = view.desired - held
    is_complete = is_observed and statefulset is not None and len(done) >= wanted and not view.is_updating
    return RolloutProgress(
        name=view.name,
        done=len(done),
        updated=len(updated),
        ready=view.ready_by_pods,
        wanted=wanted,
        held=held,
        is_complete=is_complete,
        is_paused=is_paused(lws),
        left=None if is_complete else _left(lws, len(done), wanted, now),
        why=reasons(view).removeprefix("; "),
        passed=tuple(group.name for group in rolled if group.is_exhausted and group not in updated),
        exhausted=tuple(group.name for group in updated if group.is_exhausted),
    )


def line(found: RolloutProgress) -> str:
    """Return the progress of a rollout in one line.

    >>> line(RolloutProgress(name="web", done=1, updated=2, ready=3, wanted=4, held=0, is_complete=False, is_paused=False,
    ...     left=timedelta(seconds=90), why=""))
    'web: 1 of 4 groups updated and ready, 1 starting; 3 ready in all; about 90s left'
    """
    parts = [f"{found.done} of {counted(found.wanted, 'group')} updated and ready"]
    if starting := found.updated - found.done:
        parts[0] += f", {starting} starting"
    parts.append(f"{found.ready} ready in all")
    if found.held:
        parts.append(f"the partition holds {counted(found.held, 'group')}")
    if found.passed:
        parts.append(
            f"no restart left: {groups_named(found.passed)}, passed over and outside maxUnavailable until replaced"
        )
    if found.exhausted:
        parts.append(f"no restart left: {groups_named(found.exhausted)}; to let it try again: lws recover {found.name}")
    if found.is_paused:
        parts.append("paused")
    elif found.left is not None:
        parts.append(f"about {duration(found.left)} left")
    return f"{found.name}: {'; '.join(parts)}"


def brief_line(found: RolloutProgress) -> str:
    """Return the line for a terminal, which truncates it at the end: the most important facts come first.

    >>> brief_line(RolloutProgress(name="web", done=1, updated=2, ready=3, wanted=4, held=0, is_complete=False, is_paused=False,
    ...     left=timedelta(seconds=90), why="web-1 is Pending: no node"))
    'web: 1 of 4; about 90s left; web-1 is Pending: no node; 1 starting; 3 ready in all'
    """
    parts = [f"{found.done} of {found.wanted}"]
    if found.is_paused:
        parts.append("paused")
    elif found.left is not None:
        parts.append(f"about {duration(found.left)} left")
    parts += [found.why] if found.why else []
    parts += [f"{starting} starting"] if (starting := found.updated - found.done) else []
    return f"{found.name}: {'; '.join(parts)}; {found.ready} ready in all"


def document(found: RolloutProgress) -> JSONObject:
    """Return the document with stable field names, as `-o json` prints it."""
    return {
        "apiVersion": VERSION,
        "kind": "RolloutStatus",
        "leaderWorkerSet": found.name,
        "complete": found.is_complete,
        "paused": found.is_paused,
        "doneGroups": found.done,
        "updatedGroups": found.updated,
        "readyGroups": found.ready,
        "wantedGroups": found.wanted,
        "heldGroups": found.held,
        "exhaustedGroups": [*found.passed, *found.exhausted],
        "estimatedSeconds": None if found.left is None else int(found.left.total_seconds()),
        "reason": found.why,
    }


def bar(found: RolloutProgress) -> str:
    """Return a bar of the groups: done, starting, and still to come.

    >>> bar(RolloutProgress(name="web", done=2, updated=3, ready=3, wanted=4, held=0, is_complete=False, is_paused=False,
    ...     left=None, why=""))
    '[##########=====-----]'
    """
    wanted = max(found.wanted, 1)
    done = BAR * min(found.done, wanted) // wanted if found.wanted else BAR
    starting = BAR * min(found.updated, wanted) // wanted - done if found.wanted else 0
    return f"[{'#' * done}{'=' * starting}{'-' * (BAR - done - starting)}]"


def _left(lws: JSONObject, done: int, wanted: int, now: datetime) -> timedelta | None:
    began = (meta.find_condition(lws, UPDATE_IN_PROGRESS.type) or {}).get("lastTransitionTime")
    if not began or not done or not meta.is_condition_true(lws, UPDATE_IN_PROGRESS.type):
        return None
    return max(now - datetime.fromisoformat(began), timedelta()) / done * (wanted - done)
