"""Judges a failure from the log of its container, which has more lines than a termination message. Pure."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import errorlines, meta, podstate
from kuberuntime.objects.meta import JSONObject
from leaderworkerset.diagnosis import ranks
from leaderworkerset.diagnosis.finding import Diagnosis
from leaderworkerset.views.masking import Mask

QUOTED: Final = 5
"""The number of last lines that are quoted, below the first error."""

CUT_LINES: Final = 80
CUT_LENGTH: Final = 2000
"""The size of a message from which on the kubelet has cut its beginning (`FallbackToLogsOnError`)."""

INDENT: Final = "  "
"""The beginning of quoted lines in evidence."""


def quotes(lines: Sequence[str]) -> list[str]:
    """Return the first error and the last lines of a program, masked, for evidence."""
    masked_lines = Mask().lines(lines)
    return [f"{INDENT}{ranks.quote(line)}" for line in errorlines.excerpt(masked_lines, QUOTED)] if lines else []


def wants_log(end: JSONObject) -> bool:
    """Return whether the log of a run may show an error that its termination message lacks."""
    lines, message = podstate.last_lines(end), str(end.get("message") or "")
    is_cut = len(lines) >= CUT_LINES or len(message) >= CUT_LENGTH
    return is_cut or not errorlines.telling(lines).certain


def with_log(diagnosis: Diagnosis, lines: Sequence[str]) -> Diagnosis:
    """Return a diagnosis judged from the log of its container; unchanged if there are no lines."""
    if diagnosis.log is None or not lines:
        return diagnosis
    facts = [line for line in diagnosis.evidence if not line.startswith(INDENT)]
    title = f"the last lines of {meta.name(diagnosis.log.pod)}, container {diagnosis.log.container}:"
    error = ranks.quote(podstate.quoted(lines)) if diagnosis.statement else ""
    sentence = f"{diagnosis.statement}{error}" if diagnosis.statement else diagnosis.sentence
    return replace(diagnosis, sentence=sentence, evidence=(*facts, title, *quotes(lines)))
