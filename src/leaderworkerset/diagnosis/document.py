"""Diagnoses as text for people and as documents for programs, for `lws explain` and other commands. Pure."""

from collections.abc import Sequence
from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.diagnosis.finding import Diagnosis, Subject

VERSION: Final = "lws/v1"
"""`apiVersion` of the document; it changes only when a field changes its meaning."""


def headline(told: Diagnosis) -> str:
    """Return a diagnosis in one line: target, verdict, code and sentence.

    >>> from leaderworkerset.diagnosis.finding import Verdict
    >>> headline(Diagnosis(target="web", verdict=Verdict.STUCK, sentence="no node has enough cpu", code="LWS-E036"))
    'web is stuck: LWS-E036: no node has enough cpu'
    """
    state = "not ready" if told.verdict == "unknown" else told.verdict
    return f"{told.target} is {state}: {f'{told.code}: ' if told.code else ''}{told.sentence}"


def lines(told: Diagnosis) -> list[str]:
    """Return a diagnosis as text: the headline, the evidence, the next step, and the kinds that may not be read."""
    found = [headline(told)]
    found += ["", "Evidence:", *(f"  {line}" for line in told.evidence)] if told.evidence else []
    found += ["", "Next:", *(f"  {step}" for step in told.steps)] if told.steps else []
    found += ["", f"Not read, so nothing is known of it: {', '.join(told.unread)}"] if told.unread else []
    return found


def document(diagnoses: Sequence[Diagnosis]) -> JSONObject:
    """Return the document of diagnoses, whose field names are stable."""
    return {"apiVersion": VERSION, "kind": "DiagnosisList", "items": [_item(one) for one in diagnoses]}


def _item(told: Diagnosis) -> JSONObject:
    return {
        "target": told.target,
        "namespace": told.namespace or None,
        "disaggregatedSet": told.owner or None,
        "verdict": str(told.verdict),
        "code": told.code or None,
        "title": told.title or None,
        "subject": _subject(told.subject) if told.subject else None,
        "sentence": told.sentence,
        "evidence": list(told.evidence),
        "nextSteps": list(told.steps),
        "notRead": list(told.unread),
    }


def _subject(subject: Subject) -> JSONObject:
    return {"kind": subject.kind, "name": subject.name, "group": subject.group, "rank": subject.rank}
