"""The steps of a key through one controller's queue and workers, for whoever counts them (`metrics.py`)."""

from collections.abc import Hashable
from enum import StrEnum
from typing import Final, Protocol


class Result(StrEnum):
    """How the processing of a key ended, in controller-runtime's words."""

    SUCCESS = "success"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"


class Observer(Protocol):
    """Is notified of every step of a key through a queue. It must return at once and never fail."""

    def queued(self, key: Hashable) -> None:
        """Note that `key` is due and was not before."""
        ...

    def retried(self, key: Hashable) -> None:
        """Note that `key` comes again after a failure."""
        ...

    def taken(self, key: Hashable) -> None:
        """Note that a worker begins with `key`."""
        ...

    def finished(self, key: Hashable, result: Result) -> None:
        """Note how the work on `key` ended."""
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
