"""Diagnoses as text for users and as documents for programs, for `lws explain` and other commands. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from kuberuntime.objects.meta import JSONObject
from leaderworkerset.diagnosis.diagnose import WORST, worst
from leaderworkerset.diagnosis.finding import Diagnosis, Subject, Verdict
from leaderworkerset.views.wording import counted, listed

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
    """Return a diagnosis as text: the headline, the evidence, the next step, and the unreadable kinds."""
    found = [headline(told)]
    found += ["", "Evidence:", *(f"  {line}" for line in told.evidence)] if told.evidence else []
    found += ["", "Next:", *(f"  {step}" for step in told.steps)] if told.steps else []
    found += ["", f"Not read, so nothing is known of it: {', '.join(told.unread)}"] if told.unread else []
    return found


def document(diagnoses: Sequence[Diagnosis]) -> JSONObject:
    """Return the document of diagnoses, whose field names are stable."""
    return {"apiVersion": VERSION, "kind": "DiagnosisList", "items": [_item(diagnosis) for diagnosis in diagnoses]}


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


BLOCKS: Final = 10
"""The number of diagnoses with evidence and next steps; each other one has a line."""

NAMES: Final = 10
"""The maximum number of healthy objects that are named."""


def ordered(found: Iterable[Diagnosis]) -> list[Diagnosis]:
    """Return diagnoses by urgency, with those of one DisaggregatedSet together."""
    by_set = [list(group) for _, group in groupby(sorted(found, key=_set), _set)]
    inner = [sorted(group, key=lambda one: WORST.index(one.verdict)) for group in by_set]
    return [one for group in sorted(inner, key=lambda group: WORST.index(group[0].verdict)) for one in group]


def overview(found: Sequence[Diagnosis], *, with_namespace: bool = False) -> list[str]:
    """Return the text of diagnoses in order: the first in full, then lines, and all healthy objects in one line."""
    sets = [list(group) for _, group in groupby(found, _set)]
    ill = [group for group in sets if worst(group).verdict is not Verdict.HEALTHY]
    fine = [group for group in sets if worst(group).verdict is Verdict.HEALTHY]
    paragraphs = [_block(group, with_namespace=with_namespace) for group in ill[:BLOCKS]]
    if others := [worst(group) for group in ill[BLOCKS:]]:
        lined = [f"  {_prefix(other, with_namespace=with_namespace)}{headline(other)}" for other in others]
        paragraphs.append(["Others:", *lined])
    if fine:
        named = listed([_title(group[0], with_namespace=with_namespace) for group in fine], NAMES)
        paragraphs.append([f"{len(fine)} of {counted(len(sets), 'set')} healthy: {named}"])
    return [line for paragraph in paragraphs for line in ("", *paragraph)][1:]


def _block(group: Sequence[Diagnosis], *, with_namespace: bool) -> list[str]:
    chosen = worst(group)
    first, *rest = lines(chosen)
    parts = [f"  {headline(one)}" for one in group if one is not chosen]
    below = ["", f"Other LeaderWorkerSets of {chosen.owner}:", *parts] if parts else []
    return [_prefix(chosen, with_namespace=with_namespace) + first, *rest, *below]


def _set(told: Diagnosis) -> tuple[str, str, str]:
    return told.namespace, told.owner, "" if told.owner else told.target


def _title(told: Diagnosis, *, with_namespace: bool) -> str:
    name = told.owner or told.target
    return f"{name} ({told.namespace})" if with_namespace else name


def _prefix(told: Diagnosis, *, with_namespace: bool) -> str:
    place = f"namespace {told.namespace}: " if with_namespace else ""
    return f"{place}{told.owner}: " if told.owner and told.owner != told.target else place
