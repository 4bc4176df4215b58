"""Describes a group failure, including the logs of its ranks. It can be analyzed after the pods are deleted.

Pure. Times are RFC 3339 texts. Secrets are masked in all text that containers and users write.
"""

from enum import StrEnum
from typing import Final, assert_never

import msgspec

ON_REQUEST: Final = "stopped on request"
"""The termination reason of a container in a deleted pod."""

LINES: Final = 200
"""The maximum number of stored log lines per container run."""

MOST_EVENTS: Final = 100
MOST_CHANGES: Final = 50


class Outcome(StrEnum):
    """The outcome of the failure for the group."""

    FAILED = "failed"
    """The group is waiting to be recreated, or its restart policy does not recreate it."""
    RECREATED = "recreated"
    EXHAUSTED = "exhausted"
    """The group is not recreated, because its restarts are exhausted."""

    @property
    def description(self) -> str:
        """Return a past-tense description of the outcome."""
        match self:
            case Outcome.FAILED:
                return "failed"
            case Outcome.RECREATED:
                return "was recreated"
            case Outcome.EXHAUSTED:
                return "was given up"
            case _:
                assert_never(self)


class Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base class for parts of an episode. Field names are the same as in the API."""


class RunTermination(Record, frozen=True, kw_only=True):
    """The termination of one container run."""

    exit_code: int
    reason: str = ""
    finished_at: str = ""


class RecordedContainer(Record, frozen=True, kw_only=True):
    """A container with its restart count, last terminations, and last log lines of each run (oldest first)."""

    name: str
    restarts: int = 0
    ends: tuple[RunTermination, ...] = ()
    logs: tuple[tuple[str, ...], ...] = ()


class RecordedRank(Record, frozen=True, kw_only=True):
    """A rank and its pod."""

    rank: int
    pod: str
    node: str = ""
    phase: str = ""
    containers: tuple[RecordedContainer, ...] = ()


class EpisodeEvent(Record, frozen=True, kw_only=True):
    """An API event."""

    time: str
    object: str
    message: str
    is_warning: bool = False
    reason: str = ""
    count: int = 1


class Revision(Record, frozen=True, kw_only=True):
    """The revision of the group, and the changes since the previous revision."""

    number: int
    key: str
    created: str = ""
    before: int | None = None
    changes: tuple[str, ...] = ()


class Episode(Record, frozen=True, kw_only=True):
    """A failure of a group. `number` is the sequence number of the episode in its group. The store assigns it."""

    namespace: str
    lws: str
    group: str
    outcome: Outcome
    time: str
    number: int = 0
    first_rank: int | None = None
    """The rank that failed first, or None if it is unknown or if no container failed."""
    failed_pod: str = ""
    """The pod of `first_rank`. If `first_rank` is unknown, the pod that triggered the recreation."""
    failure: str = ""
    """The state of the failed pod as one sentence."""
    recreations: int = 0
    """The number of consecutive failures, including the current failure."""
    recreate_after: str = ""
    revision: Revision | None = None
    ranks: tuple[RecordedRank, ...] = ()
    events: tuple[EpisodeEvent, ...] = ()
    masked: int = 0
    """The number of masked values, which are possible secrets."""
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return the episode label in the output of `lws history`. It cannot be mistaken for a rank."""
        return f"{self.lws}/{self.group}#{self.number}"
