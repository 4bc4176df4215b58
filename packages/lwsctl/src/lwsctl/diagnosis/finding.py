"""Defines the data types of causes and findings. Pure."""

from collections.abc import Callable
from datetime import timedelta
from typing import NotRequired, TypeAlias, TypedDict, Unpack

from msgspec import Struct

from lwsctl.diagnosis.observed import Observed
from lwsctl.model.diagnosis import FailedContainer, Person, RecordedRun, Subject
from lwsctl.model.health import Verdict


class Finding(Struct, frozen=True, kw_only=True):
    """A detected cause with its object, sentence, evidence and next steps.

    `failed_container` is the container whose log may contain more details. Callers that can read the log add it, and append its
    error to `statement` (`logerrors.with_lines`). If the pod is deleted, the log of `recorded_run` is in an episode.
    `verdict` overrides the verdict of the cause, because some errors are normal during a start.
    """

    subject: Subject
    sentence: str
    evidence: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    failed_container: FailedContainer | None = None
    recorded_run: RecordedRun | None = None
    statement: str = ""
    """The sentence without the error of the container."""
    verdict: Verdict | None = None


Find: TypeAlias = Callable[[Observed], Finding | None]


class Cause(Struct, frozen=True, kw_only=True):
    """A cause in the catalogue.

    The meaning of a code never changes. `meaning` and `remedy` are shown in the reference.

    A test applies each remedy without a `person`. If another component is processing the problem, `patience` is the
    time for which the state is progressing, independent of other starts.
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
