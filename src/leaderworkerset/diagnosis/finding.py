"""The values of a diagnosis: a cause as the catalogue has it, a finding, and what is told in the end. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from leaderworkerset.diagnosis.observed import Observed
from leaderworkerset.views.outcome import FailedContainer


class Verdict(StrEnum):
    """How a LeaderWorkerSet is: as wanted, on its way, in need of somebody, or not ready for a reason not found."""

    HEALTHY = "healthy"
    PROGRESSING = "progressing"
    STUCK = "stuck"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The object that a finding is about, and the group and rank it stands for, where it does."""

    kind: str
    name: str
    group: int | None = None
    rank: int | None = None

    def __str__(self) -> str:
        place = "/".join(str(part) for part in (self.group, self.rank) if part is not None)
        return f"{self.kind} {self.name}" + (f" ({place})" if place else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause that was found: what it is about, in one sentence, what proves it, and what to do.

    `log` is the container whose last lines would say more; whoever can read logs adds them. `verdict`, where given,
    is this finding's own: what is an error in the end can be usual at the start.
    """

    subject: Subject
    sentence: str
    evidence: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    log: FailedContainer | None = None
    verdict: Verdict | None = None


Find: TypeAlias = Callable[[Observed], Finding | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An entry of the catalogue. Its code never changes its meaning; `meaning` and `remedy` are for the reference."""

    code: str
    title: str
    meaning: str
    remedy: str
    find: Find
    verdict: Verdict = Verdict.STUCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What is said about a LeaderWorkerSet, a group or a rank. `unread` are the kinds that may not be read.

    `owner` is the DisaggregatedSet that it is a part of, where that was asked about.
    """

    target: str
    verdict: Verdict
    sentence: str
    code: str = ""
    title: str = ""
    subject: Subject | None = None
    evidence: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    log: FailedContainer | None = None
    namespace: str = ""
    owner: str = ""
