"""Determines the time at which a failed group is recreated. Repeated failures increase the delay.

The Go controller recreates a group immediately after every failure (`UPSTREAM_RESTARTS`). With other settings
(`Extensions.restarts`), a group that fails again soon after its last recreation waits. The default delay is 10 seconds,
and is doubled up to 5 minutes, as for crashing containers in the kubelet. The number of recreations may also be limited
(`core/restarts/counts.py`). A group that fails after the last recreation is exhausted. The reasons for a separate
record object are in docs/adr/0003-recreation-backoff.md.

Input: the record of the group's last recreation (`api/recreationrecord.py`), the leader pod, the failure, the
settings, the time. Output: the next record. A record identifies the leader to delete by UID. This leader is deleted
once, regardless of the number of failures and of the manager replica that reconciles. The next leader has no mark.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from leaderworkerset.api import groupname, labels, recreationrecord
from leaderworkerset.api.recreationrecord import Failure, Origin, Recreation, RecreationState

MOST_DELETIONS: Final = 5
"""The maximum number of recreations due to unexplained pod deletions within `DELETIONS_WITHIN`."""

DELETIONS_WITHIN: Final = timedelta(minutes=2)
"""The period for counting unexplained pod deletions.

Additional recreations wait until the first recreation is older.
"""

DOUBLINGS: Final = 32
"""The maximum number of times that a delay is doubled, which exceeds all configurable limits."""


class RestartSettings(Struct, frozen=True, kw_only=True):
    """The settings for recreating failed groups.

    If `has_backoff` is not set, every failure recreates the group immediately. If `max_restarts` is not set, recreations
    are not limited. `resumed` can be any text. If it changes, the counts of groups are reset.
    """

    has_backoff: bool = True
    first_delay: timedelta = timedelta(seconds=10)
    longest_delay: timedelta = timedelta(minutes=5)
    reset_after: timedelta = timedelta(minutes=10)
    max_restarts: int | None = None
    resumed: str = ""

    @property
    def records_recreations(self) -> bool:
        """Return whether recreations must be recorded, because delays or limits depend on their number."""
        return self.has_backoff or self.max_restarts is not None

    def delay(self, count: int) -> timedelta:
        """Return the delay before the consecutive recreation number `count`.

        >>> [int(RestartSettings().delay(count).total_seconds()) for count in (1, 2, 3, 6, 7, 1000)]
        [0, 10, 20, 160, 300, 300]
        """
        if count <= 1 or not self.has_backoff:
            return timedelta()
        doublings: int = 2 ** min(count - 2, DOUBLINGS)
        longest = max(self.first_delay, self.longest_delay)
        return longest if doublings >= longest / self.first_delay else self.first_delay * doublings

    def is_limit_reached(self, used: int) -> bool:
        """Return whether a group with this number of used restarts is exhausted."""
        return self.max_restarts is not None and used >= self.max_restarts


UPSTREAM_RESTARTS: Final = RestartSettings(has_backoff=False)
"""The settings of the Go controller, with the restart limit in the spec."""


def start_recreation(recreation: Recreation, settings: RestartSettings, used: int) -> Recreation:
    """Return the recreation as due now. It increments the number of used restarts."""
    if recreation.state is RecreationState.RECREATED:
        return recreation
    counted = None if settings.max_restarts is None else used + 1
    return replace(recreation, state=RecreationState.RECREATED, used_restarts=counted)


def immediate_recreation(recreation: Recreation, settings: RestartSettings, now: datetime) -> Recreation:
    """Return the first consecutive recreation of the same leader for the same failure. It is due immediately."""
    waiting = replace(recreation, count=1, due_at=now, state=RecreationState.WAITING, resumed=settings.resumed)
    return start_recreation(waiting, settings, 0)


def next_recreation(
    previous: Recreation | None,
    leader: JSONObject,
    failure: Failure,
    settings: RestartSettings,
    now: datetime,
    used: int = 0,
) -> Recreation:
    """Return the recreation of `leader` after the previous recreation of the group and `used` restarts.

    If the leader was otherwise replaced while the group waited, the recreation did not take place. It is not counted
    twice, because the next failure reuses its number and time. For a different revision, the count is reset. If the
    user changed the text that resumes groups, the count and the used restarts are reset. Disruptions and deletions do
    not count, and only too many deletions are delayed.
    """
    is_resumed = previous is not None and previous.resumed != settings.resumed
    repeated = previous if previous is not None and _is_repeated(previous, leader, settings, now) else None
    if repeated is not None:
        lengths = (repeated.failure.longest_run, failure.longest_run)
        longest_run = max((length for length in lengths if length is not None), default=None)
        failure = replace(failure, longest_run=longest_run)
    deletions = () if previous is None or is_resumed else previous.deletions
    count, due = 0 if repeated is None else _completed_count(repeated), now
    match failure.origin:
        case Origin.PROGRAM:
            count += 1
            due = _delayed_time(repeated, now + settings.delay(count), now)
        case Origin.DELETION:
            due = _next_allowed_deletion(deletions, now) if settings.has_backoff else now
            deletions = (*deletions, due)[-MOST_DELETIONS:]
        case Origin.DISRUPTION:
            pass
        case _:
            assert_never(failure.origin)
    used = 0 if is_resumed else used
    spent = settings.is_limit_reached(used)
    waits = due > now and not spent
    since = now if repeated is None or failure.origin is Origin.PROGRAM else min(repeated.due_at, now)
    new = Recreation(
        leader=meta.uid(leader),
        revision=groupname.revision_key(leader),
        count=count,
        due_at=due if waits else since,
        failure=failure,
        state=RecreationState.EXHAUSTED if spent else RecreationState.WAITING,
        resumed=settings.resumed,
        deletions=deletions,
    )
    return new if spent or waits else start_recreation(new, settings, used)


def max_delay(recreation: Recreation, settings: RestartSettings) -> timedelta:
    """Return the maximum delay before a failed group is recreated. Longer delays result from an incorrect clock."""
    is_program = recreation.failure.origin is Origin.PROGRAM
    return settings.delay(recreation.count) if is_program else DELETIONS_WITHIN


def _completed_count(previous: Recreation) -> int:
    """Return the number of consecutive recreations, except for a pending recreation whose leader was replaced."""
    return previous.count - 1 if _is_pending(previous) else previous.count


def _is_pending(previous: Recreation) -> bool:
    return previous.state is not RecreationState.RECREATED and previous.failure.origin is Origin.PROGRAM


def _delayed_time(repeated: Recreation | None, longest: datetime, now: datetime) -> datetime:
    """Return the time of a recreation, at most `longest`. A pending recreation retains its time."""
    is_pending = repeated is not None and _is_pending(repeated)
    return min(max(repeated.due_at, now), longest) if repeated is not None and is_pending else longest


def _next_allowed_deletion(deletions: Sequence[datetime], now: datetime) -> datetime:
    """Return the earliest time at which a further deletion is allowed within `DELETIONS_WITHIN`."""
    if len(deletions) < MOST_DELETIONS:
        return now
    return min(max(now, deletions[-MOST_DELETIONS] + DELETIONS_WITHIN), now + DELETIONS_WITHIN)


def _is_repeated(previous: Recreation, leader: JSONObject, settings: RestartSettings, now: datetime) -> bool:
    """Return whether the failure recurs soon with the same revision, and was not reset by the user."""
    is_same = previous.revision == groupname.revision_key(leader) and previous.resumed == settings.resumed
    return is_same and now - previous.due_at < settings.reset_after


def build(obj: JSONObject, leader: JSONObject, recreation: Recreation) -> JSONObject:
    """Build the record of a recreation."""
    return build_record(obj, leader, recreationrecord.write(recreation))


def build_record(obj: JSONObject, leader: JSONObject, annotations: Mapping[str, str]) -> JSONObject:
    """Build a group record. Its owner is the LeaderWorkerSet, so that it is not deleted with the leader."""
    own = {labels.NAME: meta.name(obj), labels.GROUP_INDEX: groupname.group_label(leader)}
    name = recreationrecord.record_name(leader)
    return CONTROLLER_REVISIONS.controlled(obj, name, own, annotations=annotations, data={}, revision=0)
