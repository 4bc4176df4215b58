"""Diagnoses a LeaderWorkerSet, a group or a rank by the first matching cause in the catalogue. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS
from kuberuntime.texts import errorboundary
from leaderworkerset.api.conditions import COMPLETE
from lwsctl.diagnosis import evictions, facts, memorylimits, ranks, storedvalues
from lwsctl.diagnosis.catalogue import CATALOGUE, NO_CAUSE, NOT_READ, OF_SETS
from lwsctl.diagnosis.causes import contention, starts
from lwsctl.diagnosis.causes.rollouts import configuration
from lwsctl.diagnosis.causes.unreconciled import set_subject
from lwsctl.diagnosis.facts import is_as_desired
from lwsctl.diagnosis.finding import Cause, Finding
from lwsctl.diagnosis.observed import KUBECTL, Observed
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import SetView
from lwsctl.model.health import AS_DESIRED, CALM, NEEDS_USER, URGENCY, Verdict, derive_verdict
from lwsctl.model.leaderworkerset import View
from lwsctl.views import outcome
from lwsctl.views.selection import Selection, narrow
from lwsctl.views.wording import duration, format_count, updated_groups

SHORT: Final = timedelta(minutes=1)
"""The maximum duration of starts that are not reported."""


def diagnose(observed: Observed, selection: Selection) -> Diagnosis:
    """Return the root cause for the selection. For a set, include stored values that admission would now reject.

    If an object cannot be diagnosed, the diagnosis contains the error.
    """
    return errorboundary.attempt(
        partial(_diagnose_with_stored_values, observed, selection), partial(_failed_diagnosis, observed, selection)
    )


def _failed_diagnosis(observed: Observed, selection: Selection, error: str) -> Diagnosis:
    return Diagnosis(
        target=str(selection),
        verdict=Verdict.UNKNOWN,
        sentence=error,
        code=NO_CAUSE.code,
        title=NO_CAUSE.title,
        steps=(observed.lws(f"describe {selection}"),),
        namespace=observed.view.namespace,
    )


def _diagnose_with_stored_values(observed: Observed, selection: Selection) -> Diagnosis:
    diagnosis = _diagnose(observed, selection)
    diagnosis = replace(diagnosis, evidence=(*diagnosis.evidence, *memorylimits.warnings(observed)))
    if selection.group is not None or not (errors := storedvalues.errors(observed)):
        return diagnosis
    evidence = (*diagnosis.evidence, *(f"the stored value is invalid for new objects: {error}" for error in errors))
    steps = (
        *diagnosis.steps,
        f"correct {errors[0].path} in the manifest, and apply it; until then, other updates are still accepted",
    )
    return replace(diagnosis, evidence=evidence, steps=steps)


def _diagnose(observed: Observed, selection: Selection) -> Diagnosis:
    """Return the root cause for the selection.

    If a rank does not have a separate cause, use the cause of its group.
    """
    if observed.set_view is not None:
        return _diagnose_set(observed, observed.set_view)
    view, now = observed.view, observed.now
    if is_as_desired(view, selection, now) or facts.is_complete(view, selection, ends=observed.runs_to_completion):
        return _healthy_diagnosis(observed, selection)
    cut = replace(observed, view=narrow(view, Selection(selection.name, selection.group)))
    if selection.rank is not None:
        own_match = _first_finding(replace(cut, rank=selection.rank))
        if own_match is not None and own_match[0].verdict in NEEDS_USER:
            return _build_diagnosis(observed, selection, *own_match)
    match = _first_finding(cut) or _loading_finding(cut)
    if match is None and facts.selection_verdict(view, selection, now) in AS_DESIRED:
        return _healthy_diagnosis(observed, selection)
    return _build_diagnosis(observed, selection, *match) if match else _unknown_diagnosis(cut, selection)


def _diagnose_set(observed: Observed, set_view: SetView) -> Diagnosis:
    """Return the diagnosis of a DisaggregatedSet itself, because its LeaderWorkerSets are diagnosed separately."""
    selection = Selection(set_view.name)
    if set_view.is_settled and not meta.is_deleting(set_view.object):
        text = f"{', '.join(map(str, set_view.roles))} ready, all at the latest revision"
        diagnosis = Diagnosis(
            target=str(selection), verdict=Verdict.HEALTHY, sentence=text, namespace=set_view.namespace
        )
    else:
        match = _first_finding(observed, OF_SETS)
        diagnosis = _build_diagnosis(observed, selection, *match) if match else _unknown_diagnosis(observed, selection)
    return replace(diagnosis, owner=set_view.name)


def diagnose_disaggregatedset(set_diagnosis: Diagnosis, parts: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the findings for a DisaggregatedSet itself, unless one of its parts explains the state better."""
    is_ill = any(part.verdict not in AS_DESIRED for part in parts)
    says_more = set_diagnosis.verdict in NEEDS_USER or not parts
    if says_more or (set_diagnosis.verdict not in AS_DESIRED and not is_ill):
        return [set_diagnosis, *parts]
    return list(parts)


def worst(diagnoses: Iterable[Diagnosis]) -> Diagnosis:
    """Return the most urgent diagnosis, which is the first one if several have the same verdict."""
    return min(diagnoses, key=lambda diagnosis: URGENCY.index(diagnosis.verdict))


def _first_finding(observed: Observed, causes: Sequence[Cause] = CATALOGUE) -> tuple[Cause, Finding] | None:
    for cause in causes:
        finding = cause.find(observed)
        if finding is not None:
            return cause, finding
    return None


def _loading_finding(observed: Observed) -> tuple[Cause, Finding] | None:
    """Return the fallback finding, which is that running ranks that were never ready may still be starting."""
    finding = starts.find_loading_ranks(observed)
    return (starts.find_starting_ranks, finding) if finding is not None else None


def _build_diagnosis(observed: Observed, selection: Selection, cause: Cause, finding: Finding) -> Diagnosis:
    view = observed.view
    known = facts.view_health(view, selection, ends=observed.runs_to_completion, cause=finding.verdict or cause.verdict)
    verdict = derive_verdict(known, observed.now)
    context: tuple[str, ...] = ()
    has_kubectl = bool(observed.commands.kubectl)
    if view.is_updating and not cause.code.startswith("LWS-E08") and cause.verdict in NEEDS_USER:
        context = (
            f"the rollout is waiting for this problem to be resolved: {updated_groups(view.updated, view.desired, view.up_to_date)}",
        )
    since, duration_text = _state_history(observed, selection, verdict)
    return Diagnosis(
        target=str(selection),
        verdict=verdict,
        duration=duration_text,
        patience=cause.patience if verdict in CALM else None,
        sentence=finding.sentence,
        code=cause.code,
        title=cause.title,
        person=cause.person,
        subject=finding.subject,
        evidence=(*finding.evidence, *context),
        steps=tuple(step for step in finding.steps if has_kubectl or KUBECTL not in step),
        unread=_unread_kinds(observed),
        log=finding.failed_container,
        recorded=finding.recorded_run,
        statement=finding.statement,
        namespace=view.namespace,
        since=since,
    )


def _state_history(observed: Observed, selection: Selection, verdict: Verdict) -> tuple[datetime | None, str]:
    """Return the time at which the current state started.

    For a start, also return its duration and the previous duration.
    """
    groups = [group for group in observed.view.groups if selection.group in (None, group.name)]
    if verdict is Verdict.STARTING:
        starts = [rank.startup for group in groups for rank in group.ranks if rank.startup is not None]
        first = min(starts, key=lambda startup: startup.since, default=None)
        if first is None or observed.now - first.since < SHORT:
            return None if first is None else first.since, ""
        last = f" (last time: {duration(first.other_start)})" if first.other_start is not None else ""
        return first.since, f"for {duration(observed.now - first.since)}{last}"
    crashes = [group.crashes for group in groups if group.crashes and not group.crashes.are_over(observed.now)]
    return min((known.first for known in crashes), default=None), ""


def _healthy_diagnosis(observed: Observed, selection: Selection) -> Diagnosis:
    """Return the diagnosis for a selection that is complete, or that is ready as specified."""
    view = observed.view
    is_complete = facts.is_complete(view, selection, ends=observed.runs_to_completion)
    end = meta.find_condition(view.object, COMPLETE.type) or {} if view.is_complete else {}
    since = timestamps.read(str(end.get("lastTransitionTime") or ""))
    if selection.group is not None:
        text = f"{selection} is {'complete' if is_complete else 'ready'}"
    elif view.is_complete:
        text = f"{view.completed} of {format_count(view.desired, 'group')} complete{_run_duration(view, since)}"
    else:
        text = outcome.count_of_ended(view) if is_complete else _ready_groups(view)
    blocked = evictions.blocking_reason(view, selection.group, observed.get(POD_DISRUPTION_BUDGETS))
    return Diagnosis(
        target=str(selection),
        verdict=Verdict.COMPLETE if is_complete else Verdict.HEALTHY,
        sentence="; ".join(filter(None, (text, blocked, contention.contention_note(observed)))),
        namespace=view.namespace,
        since=since,
    )


def _run_duration(view: View, end: datetime | None) -> str:
    """Return the duration of a completed run, which starts when its set is created."""
    began = timestamps.read(view.created)
    return f" after {duration(end - began)}" if began is not None and end is not None else ""


def _ready_groups(view: View) -> str:
    surplus = sum(group.index >= view.desired for group in view.groups)
    text = f"{min(view.ready, view.desired)} of {format_count(view.desired, 'group')} ready, all at the latest revision"
    text += f"; {surplus} more {'is' if surplus == 1 else 'are'} being removed" if surplus else ""
    partition = int(configuration(view).get("partition") or 0)
    return text + (f" (partition {partition})" if partition else "")


def _unknown_diagnosis(observed: Observed, selection: Selection) -> Diagnosis:
    """Return a diagnosis with only the observed state. It is used if no cause matches or evidence was not read."""
    unread = _unread_kinds(observed)
    known = facts.view_health(observed.view, selection, ends=observed.runs_to_completion)
    verdict = derive_verdict(replace(known, is_read=not unread), observed.now)
    cause = NOT_READ if verdict is Verdict.UNREAD else NO_CAUSE
    text = f"the evidence could not be read: {', '.join(unread)}" if cause is NOT_READ else "no known cause explains it"
    since, _ = _state_history(observed, selection, verdict)
    return Diagnosis(
        target=str(selection),
        verdict=verdict,
        sentence=text,
        code=cause.code,
        title=cause.title,
        subject=set_subject(observed),
        evidence=ranks.rank_states((rank for _, rank in observed.unready_ranks), 5),
        steps=(observed.lws(f"describe {selection}"),),
        unread=unread,
        namespace=observed.view.namespace,
        since=since,
    )


def _unread_kinds(observed: Observed) -> tuple[str, ...]:
    return tuple(sorted(resource.group_resource for resource in observed.unread_kinds))
