"""Diagnoses of a whole namespace as text: the most urgent first, the healthy ones in one line. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from leaderworkerset.diagnosis.diagnose import WORST, worst
from leaderworkerset.diagnosis.document import headline, lines
from leaderworkerset.diagnosis.finding import Diagnosis, Verdict
from leaderworkerset.views.wording import counted

BLOCKS: Final = 10
"""The number of diagnoses with evidence and next steps; the others have a line each."""

NAMES: Final = 10
"""The number of healthy ones that are named."""


def ordered(found: Iterable[Diagnosis]) -> list[Diagnosis]:
    """Return diagnoses by urgency, those of a DisaggregatedSet together."""
    by_set = [list(group) for _, group in groupby(sorted(found, key=_set), _set)]
    inner = [sorted(group, key=lambda one: WORST.index(one.verdict)) for group in by_set]
    return [one for group in sorted(inner, key=lambda group: WORST.index(group[0].verdict)) for one in group]


def overview(found: Sequence[Diagnosis], *, with_namespace: bool = False) -> list[str]:
    """Return the text of diagnoses in order: the first ones as blocks, then lines, and the healthy ones in one line."""
    sets = [list(group) for _, group in groupby(found, _set)]
    ill = [group for group in sets if worst(group).verdict is not Verdict.HEALTHY]
    fine = [group for group in sets if worst(group).verdict is Verdict.HEALTHY]
    paragraphs = [_block(group, with_namespace=with_namespace) for group in ill[:BLOCKS]]
    if others := [worst(group) for group in ill[BLOCKS:]]:
        lined = [f"  {_prefix(one, with_namespace=with_namespace)}{headline(one)}" for one in others]
        paragraphs.append(["Others:", *lined])
    if fine:
        named = ", ".join(_title(group[0], with_namespace=with_namespace) for group in fine[:NAMES])
        more = f" and {len(fine) - NAMES} more" if len(fine) > NAMES else ""
        paragraphs.append([f"{len(fine)} of {counted(len(sets), 'set')} healthy: {named}{more}"])
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
