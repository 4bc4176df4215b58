"""Defines the recorded history in a view, with the failures of a group and the start of a rank. Pure."""

from datetime import datetime, timedelta

from msgspec import Struct

from kuberuntime.objects.terminations import REMEMBERED, SETTLED, required_ready_time


class Recreations(Struct, frozen=True, kw_only=True):
    """The consecutive recreations of a group, with their number and the pod whose failure caused the last one.

    If `is_waiting` is set, the last recreation is pending until `due`. If `is_exhausted` is set, it will not occur.
    `failure` describes the pod's failure, and `killed` explains why a kubelet killed its container. The pod may
    belong to the group that this group replaces, but has the same rank.
    """

    count: int
    failed_pod: str
    due: datetime
    is_waiting: bool = False
    is_exhausted: bool = False
    failure: str = ""
    failed_uid: str = ""
    failed_rank: int | None = None
    longest_run: timedelta | None = None
    killed: str = ""

    @property
    def reason(self) -> str:
        """Return the reason of the failure, or an empty string.

        If a kubelet killed the container, return this reason.
        """
        return "; ".join(filter(None, (self.killed, self.failure)))

    @property
    def done(self) -> int:
        """Return the number of completed recreations."""
        return self.count - 1 if self.is_waiting or self.is_exhausted else self.count


class Crashes(Struct, frozen=True, kw_only=True):
    """The consecutive failures of a group, with their number, and the first and last known time.

    `longest_run` is None if it is unknown. `stable_since` is the time when a container in the group last started or
    became ready, or None if a container does not run. A condemned group waits for its recreation, or is never
    recreated.
    """

    count: int
    first: datetime
    last: datetime
    longest_run: timedelta | None = None
    stable_since: datetime | None = None
    is_ready: bool = False
    is_condemned: bool = False

    def are_over(self, now: datetime, least: timedelta = SETTLED) -> bool:
        """Return whether the group has been ready for at least `least` and longer than its longest run.

        If a group is not ready and the duration of its failed run is unknown, the failure is relevant for ten minutes.
        """
        if self.is_condemned:
            return False
        if self.stable_since is None or (self.longest_run is None and not self.is_ready):
            return now - self.last >= REMEMBERED
        return now - self.stable_since >= required_ready_time(self.longest_run or timedelta(), least)


class Startup(Struct, frozen=True, kw_only=True):
    """The start of a rank that was never ready, with its time, its time limit, and the start of another rank."""

    since: datetime
    patience: timedelta
    other_start: timedelta | None = None

    def may_continue(self, now: datetime) -> bool:
        """Return whether the start is within its time limit."""
        return now - self.since < self.patience
