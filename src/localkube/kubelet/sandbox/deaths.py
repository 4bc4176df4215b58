"""The back-off before a launcher that ended is replaced, which is that of crashing containers."""

from datetime import UTC, datetime

from localkube.kubelet.spec.backoff import Backoff


class Deaths:
    """Counts the ends of launchers; there is no back-off after the first one, nor after a long time without any."""

    def __init__(self) -> None:
        self.not_before = datetime.min.replace(tzinfo=UTC)
        self._backoff = Backoff()

    def note(self, now: datetime) -> None:
        """Record the end of a launcher, or a failed start."""
        self.not_before = now + self._backoff.wait(now)
        self._backoff = self._backoff.after_restart(now, now)
