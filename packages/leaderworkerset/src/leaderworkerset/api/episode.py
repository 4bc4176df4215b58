"""An episode: one failure of a group as a value, with the logs of its ranks, for readers after its pods are deleted.

Pure. Times are RFC 3339 texts. All free text of programs and users is masked.
"""

from enum import StrEnum
from typing import Final, assert_never

import msgspec

ON_REQUEST: Final = "ended on request"
"""The reason of a run that ended because its pod was deleted."""

LINES: Final = 200
"""The maximum number of last lines of each run of a container."""

MOST_EVENTS: Final = 100
MOST_CHANGES: Final = 50


class Outcome(StrEnum):
    """The outcome for a failed group."""

    FAILED = "failed"
    """The group waits for its recreation, or its policy recreates no groups."""
    RECREATED = "recreated"
    EXHAUSTED = "exhausted"
    """The group was given up: no restart was left."""

    @property
    def words(self) -> str:
        """Return what happened to the group, in the past tense."""
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
    """The base of the parts of an episode: field names as in the API."""


class RunEnd(Record, frozen=True, kw_only=True):
    """How one run of a container ended."""

    exit_code: int
    reason: str = ""
    finished_at: str = ""


class ContainerEnd(Record, frozen=True, kw_only=True):
    """A container: its restart count, the ends of its last runs, and the last lines of each, the oldest first."""

    name: str
    restarts: int = 0
    ends: tuple[RunEnd, ...] = ()
    logs: tuple[tuple[str, ...], ...] = ()


class RankEnd(Record, frozen=True, kw_only=True):
    """A rank and its pod."""

    rank: int
    pod: str
    node: str = ""
    phase: str = ""
    containers: tuple[ContainerEnd, ...] = ()


class Happened(Record, frozen=True, kw_only=True):
    """An event of the API."""

    time: str
    object: str
    message: str
    is_warning: bool = False
    reason: str = ""
    count: int = 1


class Revision(Record, frozen=True, kw_only=True):
    """The revision of the group, and its changes from the previous one."""

    number: int
    key: str
    created: str = ""
    before: int | None = None
    changes: tuple[str, ...] = ()


class Episode(Record, frozen=True, kw_only=True):
    """A failure of a group; `number` counts the episodes of the group, and is given by the store."""

    namespace: str
    lws: str
    group: str
    outcome: Outcome
    time: str
    number: int = 0
    first_rank: int | None = None
    """The rank that failed first; None if it is not known, or no container ended with an error."""
    failed_pod: str = ""
    """The pod of that rank; if it is not known, the pod for which the group was recreated."""
    failure: str = ""
    """The state of the failed pod, in one sentence."""
    recreations: int = 0
    """The number of failures in a row, including this one."""
    recreate_after: str = ""
    revision: Revision | None = None
    ranks: tuple[RankEnd, ...] = ()
    events: tuple[Happened, ...] = ()
    masked: int = 0
    """The number of replaced values that look like secrets."""
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Return the words by which `lws history` shows it; they cannot be confused with a rank."""
        return f"{self.lws}/{self.group}#{self.number}"
