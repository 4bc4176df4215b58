"""The memory of a view: the failures of a group, and the start of a rank. Pure values, without objects."""

from datetime import datetime, timedelta

from msgspec import Struct

from kuberuntime.objects.deaths import REMEMBERED, SETTLED, proof


class Recreations(Struct, frozen=True, kw_only=True):
    """The recreations of a group in a row: the number of the last one, and the pod whose failure caused it.

    While `is_waiting`, the last recreation is pending until `due`. If `is_exhausted`, it will not take place. `failure`
    describes the pod's failure, and `killed` why a kubelet killed its container. The pod may be of a group that this one
    replaces, but has the same rank.
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
        """Return what is known of the failure, first why a kubelet killed the container; empty if nothing is."""
        return "; ".join(filter(None, (self.killed, self.failure)))

    @property
    def done(self) -> int:
        """Return the number of completed recreations."""
        return self.count - 1 if self.is_waiting or self.is_exhausted else self.count


class Crashes(Struct, frozen=True, kw_only=True):
    """The failures of a group in a row: their number, and the first and last known time.

    `longest_run` is None if unknown. `stable_since` is the time since when no container of the group started or became
    ready, None if one does not run. A condemned group waits for its recreation, or is never recreated.
    """

    count: int
    first: datetime
    last: datetime
    longest_run: timedelta | None = None
    stable_since: datetime | None = None
    is_ready: bool = False
    is_condemned: bool = False

    def are_over(self, now: datetime, least: timedelta = SETTLED) -> bool:
        """Return whether the group has been ready for longer than its longest run, and for `least`.

        A group that is not ready, and whose failed run has an unknown length, is remembered for ten minutes.
        """
        if self.is_condemned:
            return False
        if self.stable_since is None or (self.longest_run is None and not self.is_ready):
            return now - self.last >= REMEMBERED
        return now - self.stable_since >= proof(self.longest_run or timedelta(), least)


class Startup(Struct, frozen=True, kw_only=True):
    """The start of a rank that was never ready: its beginning, the time it may take, and the time of another rank."""

    since: datetime
    patience: timedelta
    last: timedelta | None = None

    def may_continue(self, now: datetime) -> bool:
        """Return whether the start is within its patience."""
        return now - self.since < self.patience
