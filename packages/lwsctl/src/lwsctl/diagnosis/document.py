"""Formats diagnoses as text and as machine-readable data for `lws explain` and other commands. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from kuberuntime.objects import timestamps
from kuberuntime.objects.meta import JSONObject
from lwsctl.diagnosis.diagnose import worst
from lwsctl.model.diagnosis import Diagnosis, Subject
from lwsctl.model.health import AS_DESIRED, URGENCY, WORDS
from lwsctl.views.wording import format_count, join_names

VERSION: Final = "lws/v1"
"""The `apiVersion` of the document. It changes only if the meaning of a field changes."""


def headline(diagnosis: Diagnosis) -> str:
    """Return the target, verdict, code and sentence of a diagnosis in one line.

    >>> from lwsctl.model.health import Verdict
    >>> headline(Diagnosis(target="web", verdict=Verdict.STUCK, sentence="no node has enough cpu", code="LWS-E036"))
    'web is stuck (LWS-E036): no node has enough cpu'
    """
    code = f" ({diagnosis.code})" if diagnosis.code else ""
    return f"{diagnosis.target} is {verdict_text(diagnosis)}{code}: {diagnosis.sentence}"


def verdict_text(diagnosis: Diagnosis) -> str:
    """Return the verdict in text form. If a start takes long, its duration is included."""
    return " ".join(filter(None, [WORDS[diagnosis.verdict], diagnosis.duration]))


def lines(diagnosis: Diagnosis) -> list[str]:
    """Return a diagnosis as text: the headline, the evidence, the next steps, and unreadable kinds."""
    rows = [headline(diagnosis)]
    rows += ["", "Evidence:", *(f"  {line}" for line in diagnosis.evidence)] if diagnosis.evidence else []
    rows += ["", f"{diagnosis.next}:", *(f"  {step}" for step in diagnosis.steps)] if diagnosis.steps else []
    rows += ["", f"Not read: {', '.join(diagnosis.unread)}"] if diagnosis.unread else []
    return rows


def document(diagnoses: Sequence[Diagnosis]) -> JSONObject:
    """Return diagnoses as machine-readable data with stable field names."""
    return {
        "apiVersion": VERSION,
        "kind": "DiagnosisList",
        "items": [_diagnosis_document(diagnosis) for diagnosis in diagnoses],
    }


def _diagnosis_document(diagnosis: Diagnosis) -> JSONObject:
    return {
        "target": diagnosis.target,
        "namespace": diagnosis.namespace or None,
        "disaggregatedSet": diagnosis.owner or None,
        "verdict": str(diagnosis.verdict),
        "since": timestamps.render(diagnosis.since) if diagnosis.since else None,
        "code": diagnosis.code or None,
        "title": diagnosis.title or None,
        "subject": _subject_document(diagnosis.subject) if diagnosis.subject else None,
        "sentence": diagnosis.sentence,
        "evidence": list(diagnosis.evidence),
        "nextSteps": list(diagnosis.steps),
        "person": diagnosis.person,
        "notRead": list(diagnosis.unread),
    }


def _subject_document(subject: Subject) -> JSONObject:
    return {"kind": subject.kind, "name": subject.name, "group": subject.group, "rank": subject.rank}


BLOCKS: Final = 10
"""The number of diagnoses that are printed with evidence and next steps. Each other diagnosis is one line."""

NAMES: Final = 10
"""The maximum number of names of healthy objects."""


def sort_by_urgency(diagnoses: Iterable[Diagnosis]) -> list[Diagnosis]:
    """Sort diagnoses by urgency. Diagnoses of the same DisaggregatedSet remain together."""
    by_set = [list(group) for _, group in groupby(sorted(diagnoses, key=_set_identity), _set_identity)]
    inner = [sorted(group, key=lambda diagnosis: URGENCY.index(diagnosis.verdict)) for group in by_set]
    return [
        diagnosis for group in sorted(inner, key=lambda group: URGENCY.index(group[0].verdict)) for diagnosis in group
    ]


def overview_lines(diagnoses: Sequence[Diagnosis], *, with_namespace: bool = False) -> list[str]:
    """Return diagnoses as text. The first ones are in full, others in one line, and healthy objects share a line."""
    sets = [list(group) for _, group in groupby(diagnoses, _set_identity)]
    ill = [group for group in sets if worst(group).verdict not in AS_DESIRED]
    fine = [group for group in sets if worst(group).verdict in AS_DESIRED]
    paragraphs = [_group_lines(group, with_namespace=with_namespace) for group in ill[:BLOCKS]]
    if others := [worst(group) for group in ill[BLOCKS:]]:
        other_lines = [f"  {_prefix(other, with_namespace=with_namespace)}{headline(other)}" for other in others]
        paragraphs.append(["Others:", *other_lines])
    if fine:
        titles = join_names([_title(group[0], with_namespace=with_namespace) for group in fine], NAMES)
        paragraphs.append([f"{len(fine)} of {format_count(len(sets), 'set')} healthy: {titles}"])
    return [line for paragraph in paragraphs for line in ("", *paragraph)][1:]


def _group_lines(group: Sequence[Diagnosis], *, with_namespace: bool) -> list[str]:
    diagnosis = worst(group)
    first, *rest = lines(diagnosis)
    parts = [f"  {headline(other)}" for other in group if other is not diagnosis]
    below = ["", f"Other LeaderWorkerSets of {diagnosis.owner}:", *parts] if parts else []
    return [_prefix(diagnosis, with_namespace=with_namespace) + first, *rest, *below]


def _set_identity(diagnosis: Diagnosis) -> tuple[str, str, str]:
    return diagnosis.namespace, diagnosis.owner, "" if diagnosis.owner else diagnosis.target


def _title(diagnosis: Diagnosis, *, with_namespace: bool) -> str:
    name = diagnosis.owner or diagnosis.target
    return f"{name} ({diagnosis.namespace})" if with_namespace else name


def _prefix(diagnosis: Diagnosis, *, with_namespace: bool) -> str:
    place = f"namespace {diagnosis.namespace}: " if with_namespace else ""
    return f"{place}{diagnosis.owner}: " if diagnosis.owner and diagnosis.owner != diagnosis.target else place
