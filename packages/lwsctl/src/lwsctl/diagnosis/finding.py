"""The values of a diagnosis: an entry of the catalogue, a finding, and the final diagnosis. Pure."""

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NotRequired, TypeAlias, TypedDict, Unpack

from msgspec import Struct

from lwsctl.diagnosis.observed import Observed
from lwsctl.views.health.verdict import WORDS, Verdict
from lwsctl.views.outcome import FailedContainer


class Subject(Struct, frozen=True, kw_only=True):
    """The object that a finding is about, and the group and rank of that object, if any."""

    kind: str
    name: str
    group: int | str | None = None
    rank: int | None = None

    def __str__(self) -> str:
        place = "/".join(str(part) for part in (self.group, self.rank) if part is not None)
        return f"{self.kind} {self.name}" + (f" ({place})" if place else "")


class RecordedRun(Struct, frozen=True):
    """A failed run of a deleted pod, whose log only a recorded episode has."""

    pod: str
    container: str
    exit_code: int


class Finding(Struct, frozen=True, kw_only=True):
    """A cause that was found: its object, one sentence, the evidence, and the next steps.

    `log` is the container whose log would explain more; callers that can read it add it (`judging.with_log`), and to
    `statement` its error. Without a pod, an episode has the log of `recorded`. `verdict`, if given, overrides the verdict of
    the cause: a later error can be normal at the start.
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
    """The only person who can apply a remedy: it lies outside of the objects of the LeaderWorkerSet."""

    ADMINISTRATOR = "administrator"
    AUTHOR = "author"


PERSONS: Final = {
    Person.ADMINISTRATOR: "this requires a cluster administrator",
    Person.AUTHOR: "this depends on the manifest",
}


class Cause(Struct, frozen=True, kw_only=True):
    """An entry of the catalogue. Its code never changes its meaning; `meaning` and `remedy` are for the reference.

    A remedy without a `person` is applied by a test. `patience` is set where another component is working on it: so long that counts as progress, however long other
    starts may take.
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
    """The fields of a cause next to its function."""

    code: str
    title: str
    meaning: str
    remedy: str
    verdict: NotRequired[Verdict]
    patience: NotRequired[timedelta]
    person: NotRequired[Person]


def cause(**fields: Unpack[CauseFields]) -> Callable[[Find], Cause]:
    """Register the decorated function as an entry of the catalogue."""
    return lambda find: Cause(find=find, **fields)


class Diagnosis(Struct, frozen=True, kw_only=True):
    """The diagnosis of a LeaderWorkerSet, a group or a rank. `unread` are the kinds that the user may not read.

    `owner` is the DisaggregatedSet that it is a part of, if that was selected. `since` is the time of the first known
    failure, of the beginning of the start, or of the end; None if it is not known. A cause that is progress for a
    limited time has a `patience`. If `is_of_record`, the quoted lines are of a run whose pod is deleted.
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
    """The words after the verdict of a start that takes long: `for 4m (last time: 6m)`."""

    def __str__(self) -> str:
        parts = [f"{self.target} is {WORDS[self.verdict]} {self.duration}".rstrip(), self.code, self.sentence]
        steps = [f"  next: {step}" for step in self.steps]
        return "\n".join([": ".join(filter(None, parts)), *(f"  {line}" for line in self.evidence), *steps])

    person: Person | None = None

    @property
    def next(self) -> str:
        """Return the title of the next steps, which names the person who alone can take them."""
        return f"Next ({PERSONS[self.person]})" if self.person else "Next"
