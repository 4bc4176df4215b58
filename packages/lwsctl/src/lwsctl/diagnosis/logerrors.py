"""Finds the error of a failure in the container log, which contains more than a termination message. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import errorlines, podstate
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.terminations import ContainerFailure
from kuberuntime.texts.masking import Mask
from lwsctl.diagnosis import ranks
from lwsctl.model.diagnosis import Diagnosis, RecordedRun

QUOTED: Final = 5
"""The number of log lines that are quoted after the first error."""

CUT_LINES: Final = 80
CUT_LENGTH: Final = 2000
"""The minimum size of a message that the kubelet has truncated at the start (`FallbackToLogsOnError`)."""

NO_LINES: Final = (
    "to preserve the last log lines of failed runs, set recorder.enable in the manager configuration, or terminationMessagePolicy: FallbackToLogsOnError in "
    "container "
)
"""The next step to preserve log lines of the next failure. It is omitted if an episode contains the lines."""

INDENT: Final = "  "
"""The indentation of quoted lines in evidence."""


def quoted_errors(lines: Sequence[str]) -> list[str]:
    """Return the first error and the last lines of a container as masked evidence."""
    return _quote_lines(Mask().lines(lines)) if lines else []


def _quote_lines(masked_lines: Sequence[str]) -> list[str]:
    return [f"{INDENT}{ranks.quote_message(line)}" for line in errorlines.error_excerpt(masked_lines, QUOTED)]


def needs_log(end: JSONObject) -> bool:
    """Return whether the log of a run may contain an error that its termination message does not contain."""
    lines, message = podstate.last_lines(end), str(end.get("message") or "")
    is_cut = len(lines) >= CUT_LINES or len(message) >= CUT_LENGTH
    return is_cut or not errorlines.first_error(lines).is_certain


def recorded_run(death: ContainerFailure) -> RecordedRun | None:
    """Return the run in the recreation record if its log may contain an error that the record does not contain."""
    if not death.is_recorded or not needs_log(death.end):
        return None
    return RecordedRun(death.pod, death.container, int(death.end.get("exitCode") or 0))


def with_lines(diagnosis: Diagnosis, pod: str, container: str, lines: Sequence[str]) -> Diagnosis:
    """Return a diagnosis with the error in these masked lines. If there are no lines, return it unchanged."""
    if not lines:
        return diagnosis
    facts = [line for line in diagnosis.evidence if not line.startswith(INDENT)]
    title = f"the last lines of {pod}, container {container}:"
    error = ranks.quote_message(podstate.quote_errors(lines)) if diagnosis.statement else ""
    sentence = f"{diagnosis.statement}{error}" if diagnosis.statement else diagnosis.sentence
    steps = tuple(step for step in diagnosis.steps if not step.startswith(NO_LINES))
    evidence = (*facts, title, *_quote_lines(lines))
    return replace(diagnosis, sentence=sentence, evidence=evidence, steps=steps, recorded=None)
