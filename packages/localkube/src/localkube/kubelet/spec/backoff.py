"""The back-off of restarts of a container: 10 s, doubled each time, at most 300 s.

The first restart is immediate. After a run of 10 minutes the back-off is reset.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

INITIAL: Final = timedelta(seconds=10)
LONGEST: Final = timedelta(seconds=300)
FORGIVEN: Final = 2 * LONGEST


def is_early(moment: datetime, now: datetime) -> bool:
    """Return whether to wait for a moment; False if the clock was set back since."""
    return now < moment <= now + LONGEST


class Backoff(NamedTuple):
    """The wait after the next end, and when it was last increased."""

    delay: timedelta = timedelta()
    lengthened: datetime | None = None

    def _is_forgiven(self, at: datetime) -> bool:
        return self.lengthened is None or at - self.lengthened > FORGIVEN

    def wait(self, finished: datetime) -> timedelta:
        """Return how long a container that ended at `finished` must wait."""
        return timedelta() if self._is_forgiven(finished) else self.delay

    def after_restart(self, finished: datetime, now: datetime) -> "Backoff":
        """Return the back-off of a container that ended at `finished` and restarts now."""
        delay = INITIAL if self._is_forgiven(finished) else min(self.delay * 2, LONGEST)
        return Backoff(delay, now)
