"""An episode describes one failure of a group, with the logs of its ranks, for use after the pods are deleted.

Pure. Times are RFC 3339 texts. Secrets are masked in all text that containers and users write.
"""

from enum import StrEnum
from typing import Final, assert_never

import msgspec

ON_REQUEST: Final = "ended on request"
"""The termination reason of a container whose pod was deleted."""

LINES: Final = 200
"""The maximum number of log lines that are kept for each run of a container."""

MOST_EVENTS: Final = 100
MOST_CHANGES: Final = 50


class Outcome(StrEnum):
    """The outcome for the failed group."""

    FAILED = "failed"
    """The group is waiting for its recreation, or its policy does not recreate groups."""
    RECREATED = "recreated"
    EXHAUSTED = "exhausted"
    """The group is not recreated, because it has no restarts left."""

    @property
    def words(self) -> str:
        """Return a description of what happened to the group, in the past tense."""
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
    """The base class of the parts of an episode. Field names are the same as in the API."""


class RunEnd(Record, frozen=True, kw_only=True):
    """How one run of a container terminated."""

    exit_code: int
    reason: str = ""
    finished_at: str = ""


class ContainerEnd(Record, frozen=True, kw_only=True):
    """A container with its restart count, its last terminations, and the last log lines of each run, the oldest first."""

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


class EpisodeEvent(Record, frozen=True, kw_only=True):
    """An event of the API."""

    time: str
    object: str
    message: str
    is_warning: bool = False
    reason: str = ""
    count: int = 1


class Revision(Record, frozen=True, kw_only=True):
    """The revision of the group, and its changes from the previous revision."""

    number: int
    key: str
    created: str = ""
    before: int | None = None
    changes: tuple[str, ...] = ()


class Episode(Record, frozen=True, kw_only=True):
    """A failure of a group. `number` counts the episodes of the group, and is assigned by the store."""

    namespace: str
    lws: str
    group: str
    outcome: Outcome
    time: str
    number: int = 0
    first_rank: int | None = None
    """The rank that failed first, or None if it is unknown or no container exited with an error."""
    failed_pod: str = ""
    """The pod of `first_rank`. If that is unknown, the pod that caused the recreation of the group."""
    failure: str = ""
    """The state of the failed pod, in one sentence."""
    recreations: int = 0
    """The number of consecutive failures, including this one."""
    recreate_after: str = ""
    revision: Revision | None = None
    ranks: tuple[RankEnd, ...] = ()
    events: tuple[EpisodeEvent, ...] = ()
    masked: int = 0
    """The number of values that were masked because they look like secrets."""
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Return the label by which `lws history` shows the episode. It cannot be confused with a rank."""
        return f"{self.lws}/{self.group}#{self.number}"
