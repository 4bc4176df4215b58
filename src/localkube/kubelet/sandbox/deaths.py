"""When a launcher that died may be replaced: the same back-off as that of containers that crash."""

from datetime import UTC, datetime

from localkube.kubelet.spec.backoff import Backoff


class Deaths:
    """Counts the deaths of launchers; there is no back-off after the first, nor after one long after the last."""

    def __init__(self) -> None:
        self.not_before = datetime.min.replace(tzinfo=UTC)
        self._backoff = Backoff()

    def note(self, now: datetime) -> None:
        """Record a death, or a start that failed."""
        self.not_before = now + self._backoff.wait(now)
        self._backoff = self._backoff.after_restart(now, now)
