"""The observer of a controller's queue and workers; `metrics.py` counts their steps."""

from collections.abc import Hashable
from enum import StrEnum
from typing import Final, Protocol


class Result(StrEnum):
    """How the processing of a key ended, as controller-runtime names it."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"


class Observer(Protocol):
    """Is notified of every step of a key through a queue. It must return at once and never fail."""

    def queued(self, key: Hashable) -> None:
        """Note that `key` is due, and was not due before."""
        ...

    def retried(self, key: Hashable) -> None:
        """Note that `key` is retried after a failure."""
        ...

    def taken(self, key: Hashable) -> None:
        """Note that a worker starts processing `key`."""
        ...

    def finished(self, key: Hashable, result: Result) -> None:
        """Note the result of processing `key`."""
        ...


class Silence:
    """An observer that ignores everything."""

    def queued(self, key: Hashable) -> None:
        """Ignore it."""

    def retried(self, key: Hashable) -> None:
        """Ignore it."""

    def taken(self, key: Hashable) -> None:
        """Ignore it."""

    def finished(self, key: Hashable, result: Result) -> None:
        """Ignore it."""


SILENCE: Final = Silence()
