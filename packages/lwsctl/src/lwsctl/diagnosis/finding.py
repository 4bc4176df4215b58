"""The data types of a diagnosis: a cause in the catalogue, a finding, and the final diagnosis. Pure."""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NotRequired, TypeAlias, TypedDict, Unpack

from msgspec import Struct

from lwsctl.diagnosis.observed import Observed
from lwsctl.views.health.verdict import WORDS, Verdict
from lwsctl.views.outcome import FailedContainer


class Subject(Struct, frozen=True, kw_only=True):
    """The object that a finding describes, with its group and rank, if any."""

    kind: str
    name: str
    group: int | str | None = None
    rank: int | None = None

    def __str__(self) -> str:
        place = "/".join(str(part) for part in (self.group, self.rank) if part is not None)
        return f"{self.kind} {self.name}" + (f" ({place})" if place else "")


class RecordedRun(Struct, frozen=True):
    """A failed run of a deleted pod, whose log is only available in a recorded episode."""

    pod: str
    container: str
    exit_code: int


class Finding(Struct, frozen=True, kw_only=True):
    """A cause that was found, with its object, one sentence, the evidence, and the next steps.

    `log` is the container whose log may contain more details. Callers that can read the log add it, and append its
    error to `statement` (`judging.with_log`). If the pod is deleted, the log of `recorded` is in an episode. `verdict`
    overrides the verdict of the cause, because some errors are normal during a start.
    """

    subject: Subject
    sentence: str
    evidence: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    log: FailedContainer | None = None
    recorded: RecordedRun | None = None
    statement: str = ""
    """The sentence without the error of the container."""
    verdict: Verdict | None = None


Find: TypeAlias = Callable[[Observed], Finding | None]


class Person(StrEnum):
    """The only person who can apply a remedy, because it is not part of the LeaderWorkerSet's objects."""

    ADMINISTRATOR = "administrator"
    AUTHOR = "author"


PERSONS: Final = {
    Person.ADMINISTRATOR: "this requires a cluster administrator",
    Person.AUTHOR: "this depends on the manifest",
}


class Cause(Struct, frozen=True, kw_only=True):
    """A cause in the catalogue. The meaning of a code never changes. `meaning` and `remedy` are for the reference.

    A test applies each remedy without a `person`. If another component is handling the problem, `patience` is the time
    for which that counts as progress, independent of other starts.
    """

    code: str
    title: str
    meaning: str
    remedy: str
    find: Find
    verdict: Verdict = Verdict.STUCK
    patience: timedelta | None = None
    person: Person | None = None


class CauseFields(TypedDict):
    """The fields of a cause, except its function."""

    code: str
    title: str
    meaning: str
    remedy: str
    verdict: NotRequired[Verdict]
    patience: NotRequired[timedelta]
    person: NotRequired[Person]


def cause(**fields: Unpack[CauseFields]) -> Callable[[Find], Cause]:
    """Register the decorated function as a cause in the catalogue."""
    return lambda find: Cause(find=find, **fields)


class Diagnosis(Struct, frozen=True, kw_only=True):
    """The diagnosis of a LeaderWorkerSet, a group or a rank. `unread` are the kinds that could not be read.

    `owner` is the DisaggregatedSet that contains the object, if it was selected. `since` is the time of the first known
    failure, of the start or of completion, or None if unknown. A cause that counts as progress for a limited time has a
    `patience`. If `is_of_record` is set, the quoted lines come from a run whose pod is deleted.
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
    recorded: RecordedRun | None = None
    is_of_record: bool = False
    statement: str = ""
    namespace: str = ""
    owner: str = ""
    patience: timedelta | None = None
    since: datetime | None = None
    duration: str = ""
    """The text after the verdict if a start takes long, such as `for 4m (last time: 6m)`."""

    def __str__(self) -> str:
        parts = [f"{self.target} is {WORDS[self.verdict]} {self.duration}".rstrip(), self.code, self.sentence]
        steps = [f"  next: {step}" for step in self.steps]
        return "\n".join([": ".join(filter(None, parts)), *(f"  {line}" for line in self.evidence), *steps])

    person: Person | None = None

    @property
    def next(self) -> str:
        """Return the title of the next steps. If only one person can take the steps, the title names that person."""
        return f"Next ({PERSONS[self.person]})" if self.person else "Next"
