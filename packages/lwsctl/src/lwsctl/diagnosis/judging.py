"""Judges a failure from the log of its container, which has more lines than a termination message. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import errorlines, meta, podstate
from kuberuntime.objects.deaths import Death
from kuberuntime.objects.meta import JSONObject
from kuberuntime.texts.masking import Mask
from lwsctl.diagnosis import ranks
from lwsctl.diagnosis.finding import Diagnosis, RecordedRun

QUOTED: Final = 5
"""The number of last lines that are quoted, below the first error."""

CUT_LINES: Final = 80
CUT_LENGTH: Final = 2000
"""The size of a message from which on the kubelet has cut its beginning (`FallbackToLogsOnError`)."""

NO_LINES: Final = (
    "the log of the failed run is deleted with its pod: to keep its last lines, set recorder.enable in the configuration of "
    "the manager, or terminationMessagePolicy: FallbackToLogsOnError in container "
)
"""The step that keeps lines of the next failure, before the name of its container; it is not needed if an episode has them."""

INDENT: Final = "  "
"""The beginning of quoted lines in evidence."""


def quotes(lines: Sequence[str]) -> list[str]:
    """Return the first error and the last lines of a program, masked, for evidence."""
    return _quoted(Mask().lines(lines)) if lines else []


def _quoted(masked_lines: Sequence[str]) -> list[str]:
    return [f"{INDENT}{ranks.quote(line)}" for line in errorlines.excerpt(masked_lines, QUOTED)]


def wants_log(end: JSONObject) -> bool:
    """Return whether the log of a run may show an error that its termination message lacks."""
    lines, message = podstate.last_lines(end), str(end.get("message") or "")
    is_cut = len(lines) >= CUT_LINES or len(message) >= CUT_LENGTH
    return is_cut or not errorlines.telling(lines).certain


def recorded_run(death: Death) -> RecordedRun | None:
    """Return a run that the record of recreations describes, if a log may show an error that the record lacks."""
    if not death.is_recorded or not wants_log(death.end):
        return None
    return RecordedRun(death.pod, death.container, int(death.end.get("exitCode") or 0))


def with_log(diagnosis: Diagnosis, lines: Sequence[str]) -> Diagnosis:
    """Return a diagnosis judged from the log of its container; unchanged if there are no lines."""
    if diagnosis.log is None:
        return diagnosis
    return with_lines(diagnosis, meta.name(diagnosis.log.pod), diagnosis.log.container, lines)


def with_lines(diagnosis: Diagnosis, pod: str, container: str, lines: Sequence[str]) -> Diagnosis:
    """Return a diagnosis judged from the masked lines of a container; unchanged if there are none."""
    if not lines:
        return diagnosis
    facts = [line for line in diagnosis.evidence if not line.startswith(INDENT)]
    title = f"the last lines of {pod}, container {container}:"
    error = ranks.quote(podstate.quoted(lines)) if diagnosis.statement else ""
    sentence = f"{diagnosis.statement}{error}" if diagnosis.statement else diagnosis.sentence
    steps = tuple(step for step in diagnosis.steps if not step.startswith(NO_LINES))
    evidence = (*facts, title, *_quoted(lines))
    return replace(diagnosis, sentence=sentence, evidence=evidence, steps=steps, recorded=None)
