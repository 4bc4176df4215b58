"""Defines the diagnosis of a set, a group or a rank, with verdict, reason, evidence, and next steps. Pure."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kuberuntime.objects.meta import JSONObject
from lwsctl.model.health import WORDS, Verdict


class Subject(Struct, frozen=True, kw_only=True):
    """The object of a finding, and its group and rank, if any."""

    kind: str
    name: str
    group: int | str | None = None
    rank: int | None = None

    def __str__(self) -> str:
        place = "/".join(str(part) for part in (self.group, self.rank) if part is not None)
        return f"{self.kind} {self.name}" + (f" ({place})" if place else "")


class RecordedRun(Struct, frozen=True):
    """A failed run of a deleted pod. Its log is available only in a recorded episode."""

    pod: str
    container: str
    exit_code: int


class FailedContainer(Struct, frozen=True):
    """A failed container. If `is_previous_run` is set, the log is from the previous run."""

    pod: JSONObject
    container: str
    is_previous_run: bool


class Person(StrEnum):
    """The person who must apply a remedy, because the remedy does not concern objects of the LeaderWorkerSet."""

    ADMINISTRATOR = "administrator"
    AUTHOR = "author"


PERSONS: Final = {
    Person.ADMINISTRATOR: "this requires a cluster administrator",
    Person.AUTHOR: "this depends on the manifest",
}


class Diagnosis(Struct, frozen=True, kw_only=True):
    """The diagnosis of a LeaderWorkerSet, a group or a rank. `unread` lists the kinds that could not be read.

    `owner` is the DisaggregatedSet that contains the object, if it was selected. `since` is the time of the first
    known failure, of the start or of completion, or None if unknown. `patience` is the time for which the cause is
    progressing, if it is limited. If `is_of_record` is set, the quoted lines belong to a run whose pod is deleted.
    """

    target: str
    verdict: Verdict
    sentence: str
    code: str = ""
    title: str = ""
    person: Person | None = None
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
    """The suffix of the verdict if a start takes long, such as `for 4m (last time: 6m)`."""

    def __str__(self) -> str:
        state = f"{self.target} is {WORDS[self.verdict]} {self.duration}".rstrip()
        parts = [state + (self.code and f" ({self.code})"), self.sentence]
        steps = [f"  next: {step}" for step in self.steps]
        return "\n".join([": ".join(filter(None, parts)), *(f"  {line}" for line in self.evidence), *steps])

    @property
    def next(self) -> str:
        """Return the title of the next steps, which contains the person who must perform them, if any."""
        return f"Next ({PERSONS[self.person]})" if self.person else "Next"


NOT_DIAGNOSED: Final = Diagnosis(target="", verdict=Verdict.UNREAD, sentence="")
"""The diagnosis of a set if its evidence was not read."""
