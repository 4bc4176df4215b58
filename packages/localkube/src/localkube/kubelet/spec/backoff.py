"""Computes the restart backoff of a container, which starts at 10 s and doubles up to 300 s.

The first restart is immediate. After a run of 10 minutes the back-off is reset.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

INITIAL: Final = timedelta(seconds=10)
LONGEST: Final = timedelta(seconds=300)
FORGIVEN: Final = 2 * LONGEST


def is_before(moment: datetime, now: datetime) -> bool:
    """Return whether to wait until this time, or False if the clock was set back in the meantime."""
    return now < moment <= now + LONGEST


class Backoff(NamedTuple):
    """The delay after the next exit, and the time at which it was last increased."""

    delay: timedelta = timedelta()
    increased_at: datetime | None = None

    def _is_forgiven(self, at: datetime) -> bool:
        return self.increased_at is None or at - self.increased_at > FORGIVEN

    def wait(self, finished: datetime) -> timedelta:
        """Return the required delay of a container that terminated at `finished`."""
        return timedelta() if self._is_forgiven(finished) else self.delay

    def after_restart(self, finished: datetime, now: datetime) -> "Backoff":
        """Return the backoff of a container that terminated at `finished` and is being restarted."""
        delay = INITIAL if self._is_forgiven(finished) else min(self.delay * 2, LONGEST)
        return Backoff(delay, now)
