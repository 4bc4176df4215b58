"""Measures the progress of a rollout, and estimates the remaining time. Pure.

A group is done when it has the revision of the leader StatefulSet and all its ranks are ready. Groups below the
partition are not part of the rollout.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.api.conditions import UPDATE_IN_PROGRESS
from leaderworkerset.api.groupname import GroupName
from lwsctl.model.leaderworkerset import View
from lwsctl.rollout.patches import is_paused, partition
from lwsctl.views.document import VERSION
from lwsctl.views.reasons import reasons
from lwsctl.views.wording import duration, format_count, format_groups

BAR: Final = 20
"""The width of the progress bar in characters."""

SHORTEST: Final = timedelta(seconds=1)
"""The minimum remaining time to show."""


class RolloutProgress(Struct, frozen=True, kw_only=True):
    """The progress of a rollout, in which `done_groups` of `desired_groups` groups are updated and ready.

    The partition blocks `held_groups` groups.
    """

    name: str
    done_groups: int
    updated_groups: int
    ready_groups: int
    desired_groups: int
    held_groups: int
    is_complete: bool
    is_paused: bool
    remaining: timedelta | None
    reason: str
    exhausted_old_groups: tuple[GroupName, ...] = ()
    """Old-revision groups without remaining restarts. The rollout replaces them without waiting."""
    exhausted_groups: tuple[GroupName, ...] = ()
    """Latest-revision groups without remaining restarts. The rollout waits until a user recovers them."""

    @property
    def progress_values(self) -> tuple[int, int, int]:
        """Return the values that change during the progress of the rollout."""
        return self.done_groups, self.updated_groups, self.ready_groups


def measure_progress(view: View, now: datetime) -> RolloutProgress:
    """Measure the rollout of a LeaderWorkerSet based on its groups."""
    lws = view.object
    held_count = min(partition(lws), view.desired)
    rolled = [group for group in view.groups if held_count <= group.index < view.desired]
    updated = [group for group in view.newest_groups if held_count <= group.index < view.desired]
    done = [group for group in updated if group.is_done]
    is_observed = meta.is_observed(lws)
    desired = view.desired - held_count
    is_complete = is_observed and view.leaders is not None and len(done) >= desired and not view.is_updating
    return RolloutProgress(
        name=view.name,
        done_groups=len(done),
        updated_groups=len(updated),
        ready_groups=view.ready_by_pods,
        desired_groups=desired,
        held_groups=held_count,
        is_complete=is_complete,
        is_paused=is_paused(lws),
        remaining=None if is_complete else _remaining_time(lws, len(done), desired, now),
        reason=reasons(view).removeprefix("; "),
        exhausted_old_groups=tuple(group.name for group in rolled if group.is_exhausted and group not in updated),
        exhausted_groups=tuple(group.name for group in updated if group.is_exhausted),
    )


def progress_line(rollout: RolloutProgress) -> str:
    """Return the progress of a rollout in one line.

    >>> progress_line(RolloutProgress(name="web", done_groups=1, updated_groups=2, ready_groups=3, desired_groups=4, held_groups=0, is_complete=False, is_paused=False,
    ...     remaining=timedelta(seconds=90), reason=""))
    'web: 1/4 groups updated, 1 starting; about 90s remaining'
    """
    parts = [f"{rollout.done_groups}/{format_count(rollout.desired_groups, 'group')} updated"]
    if starting := rollout.updated_groups - rollout.done_groups:
        parts[0] += f", {starting} starting"
    if rollout.held_groups:
        parts.append(f"the partition blocks {format_count(rollout.held_groups, 'group')}")
    if rollout.exhausted_old_groups:
        parts.append(
            f"no restarts remain for {format_groups(rollout.exhausted_old_groups)} (replaced without counting in maxUnavailable)"
        )
    if rollout.exhausted_groups:
        parts.append(
            f"no restarts remain for {format_groups(rollout.exhausted_groups)}; to recover, run `lws recover {rollout.name}`"
        )
    if rollout.is_paused:
        parts.append("paused")
    elif rollout.remaining is not None and rollout.remaining >= SHORTEST:
        parts.append(f"about {duration(rollout.remaining)} remaining")
    return f"{rollout.name}: {'; '.join(parts)}"


def brief_line(rollout: RolloutProgress) -> str:
    """Return the progress for a terminal. The most important information is first, because lines are truncated.

    >>> brief_line(RolloutProgress(name="web", done_groups=1, updated_groups=2, ready_groups=3, desired_groups=4, held_groups=0, is_complete=False, is_paused=False,
    ...     remaining=timedelta(seconds=90), reason="web-1 is Pending: no node"))
    'web: 1/4 groups updated; about 90s remaining; web-1 is Pending: no node; 1 starting'
    """
    parts = [f"{rollout.done_groups}/{format_count(rollout.desired_groups, 'group')} updated"]
    if rollout.is_paused:
        parts.append("paused")
    elif rollout.remaining is not None and rollout.remaining >= SHORTEST:
        parts.append(f"about {duration(rollout.remaining)} remaining")
    parts += [rollout.reason] if rollout.reason else []
    parts += [f"{starting} starting"] if (starting := rollout.updated_groups - rollout.done_groups) else []
    return f"{rollout.name}: {'; '.join(parts)}"


def document(rollout: RolloutProgress) -> JSONObject:
    """Return the progress with stable field names, as `-o json` prints it."""
    return {
        "apiVersion": VERSION,
        "kind": "RolloutStatus",
        "leaderWorkerSet": rollout.name,
        "complete": rollout.is_complete,
        "paused": rollout.is_paused,
        "doneGroups": rollout.done_groups,
        "updatedGroups": rollout.updated_groups,
        "readyGroups": rollout.ready_groups,
        "wantedGroups": rollout.desired_groups,
        "heldGroups": rollout.held_groups,
        "exhaustedGroups": [*rollout.exhausted_old_groups, *rollout.exhausted_groups],
        "estimatedSeconds": None if rollout.remaining is None else int(rollout.remaining.total_seconds()),
        "reason": rollout.reason,
    }


def progress_bar(rollout: RolloutProgress) -> str:
    """Return a bar that shows the finished, starting, and remaining groups.

    >>> progress_bar(RolloutProgress(name="web", done_groups=2, updated_groups=3, ready_groups=3, desired_groups=4, held_groups=0, is_complete=False, is_paused=False,
    ...     remaining=None, reason=""))
    '[##########=====-----]'
    """
    total = max(rollout.desired_groups, 1)
    done = BAR * min(rollout.done_groups, total) // total if rollout.desired_groups else BAR
    starting = BAR * min(rollout.updated_groups, total) // total - done if rollout.desired_groups else 0
    return f"[{'#' * done}{'=' * starting}{'-' * (BAR - done - starting)}]"


def _remaining_time(lws: JSONObject, done: int, desired: int, now: datetime) -> timedelta | None:
    began = (meta.find_condition(lws, UPDATE_IN_PROGRESS.type) or {}).get("lastTransitionTime")
    if not began or not done or not meta.is_condition_true(lws, UPDATE_IN_PROGRESS.type):
        return None
    return max(now - datetime.fromisoformat(began), timedelta()) / done * (desired - done)
