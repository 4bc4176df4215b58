"""The diagnosis of a LeaderWorkerSet, a group or a rank: the first cause of the catalogue that matches. Pure."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.core.leaderworkerset import reading
from leaderworkerset.diagnosis import departures, evictions, memorylimits, ranks, storedvalues
from leaderworkerset.diagnosis.catalogue import CATALOGUE, OF_SETS
from leaderworkerset.diagnosis.causes import editedchildren, hangs
from leaderworkerset.diagnosis.causes.rollouts import configuration
from leaderworkerset.diagnosis.causes.unattended import own
from leaderworkerset.diagnosis.finding import Cause, Diagnosis, Finding, Verdict
from leaderworkerset.diagnosis.observed import KUBECTL, Observed
from leaderworkerset.views import edge, outcome
from leaderworkerset.views.disaggregation import SetView
from leaderworkerset.views.groups import View
from leaderworkerset.views.selection import Selection, narrow
from leaderworkerset.views.wording import counted

UNKNOWN: Final = "LWS-E099"
"""The code of states that no cause of the catalogue explains."""

WORST: Final = (Verdict.STUCK, Verdict.UNKNOWN, Verdict.PROGRESSING, Verdict.HEALTHY)


def is_as_wanted(view: View, selection: Selection) -> bool:
    """Return whether there is nothing to explain: all selected ranks are ready, on the newest revision, and stay."""
    return is_whole(view, selection) and not departures.is_moving(view)


def is_whole(view: View, selection: Selection) -> bool:
    """Return whether all selected ranks are ready, on the newest revision."""
    if meta.is_deleting(view.object) or reading.unreadable(view.object) or any(editedchildren.scaled_groups(view)):
        return False
    hung = [group.name for group in hangs.hung_groups(view)]
    if selection.group is None:
        return view.is_complete or (view.is_ready and view.updated >= view.desired and not hung)
    groups = [group for group in view.groups if group.name == selection.group]
    if selection.group in hung or any(group.end is GroupEnd.COMPLETE for group in groups):
        return selection.group not in hung
    members = [rank for group in groups for rank in group.ranks if selection.rank in (None, rank.index)]
    return bool(members) and all(rank.is_ready for rank in members)


def diagnose(observed: Observed, selection: Selection) -> Diagnosis:
    """Return the root cause of the selection, and the stored values of a whole set that admission would reject.

    If an object cannot be judged, the diagnosis is its error.
    """
    return edge.attempt(partial(_with_stored, observed, selection), partial(_unjudged, observed, selection))


def _unjudged(observed: Observed, selection: Selection, error: str) -> Diagnosis:
    return Diagnosis(
        target=str(selection),
        verdict=Verdict.UNKNOWN,
        sentence=error,
        code=UNKNOWN,
        title="the cause is not known",
        steps=(observed.lws(f"describe {selection}"),),
        namespace=observed.view.namespace,
    )


def _with_stored(observed: Observed, selection: Selection) -> Diagnosis:
    diagnosis = _diagnose(observed, selection)
    diagnosis = replace(diagnosis, evidence=(*diagnosis.evidence, *memorylimits.warnings(observed)))
    if selection.group is not None or not (errors := storedvalues.errors(observed)):
        return diagnosis
    evidence = (*diagnosis.evidence, *(f"stored, but rejected at creation: {error}" for error in errors))
    steps = (
        *diagnosis.steps,
        f"correct {errors[0].path} in the manifest, and apply it: updates do not fail until then",
    )
    return replace(diagnosis, evidence=evidence, steps=steps)


def _diagnose(observed: Observed, selection: Selection) -> Diagnosis:
    """Return the root cause of the selection; for a rank without a cause, the cause of its group."""
    if observed.of_set is not None:
        return _of_set(observed, observed.of_set)
    if is_as_wanted(observed.view, selection) or _is_done(observed, selection):
        return _healthy(observed, selection)
    cut = replace(observed, view=narrow(observed.view, Selection(selection.name, selection.group)))
    if selection.rank is not None:
        own_match = _first(replace(cut, rank=selection.rank))
        if own_match is not None and own_match[0].verdict is Verdict.STUCK:
            return _by_cause(observed, selection, *own_match)
    match = _first(cut)
    if match is None and is_whole(observed.view, selection):
        return _healthy(observed, selection)
    return _by_cause(observed, selection, *match) if match else _unknown(cut, selection)


def _is_done(observed: Observed, selection: Selection) -> bool:
    """Return whether the selected ranks run to completion, and have completed."""
    if not observed.ends or meta.is_deleting(observed.view.object):
        return False
    if selection.group is None:
        return outcome.all_done([observed.view])
    members = [(group, rank) for group in narrow(observed.view, selection).groups for rank in group.ranks]
    return bool(members) and all(outcome.has_finished(*member) for member in members)


def _of_set(observed: Observed, set_view: SetView) -> Diagnosis:
    """Return the diagnosis of a DisaggregatedSet itself; its LeaderWorkerSets have their own diagnoses."""
    selection = Selection(set_view.name)
    if set_view.is_settled and not meta.is_deleting(set_view.object):
        text = f"{', '.join(map(str, set_view.roles))} ready, all of the newest revision"
        diagnosis = Diagnosis(
            target=str(selection), verdict=Verdict.HEALTHY, sentence=text, namespace=set_view.namespace
        )
    else:
        match = _first(observed, OF_SETS)
        diagnosis = _by_cause(observed, selection, *match) if match else _unknown(observed, selection)
    return replace(diagnosis, owner=set_view.name)


def of_whole(whole: Diagnosis, parts: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the findings of a DisaggregatedSet: its own, unless a part explains the state better."""
    is_ill = any(part.verdict is not Verdict.HEALTHY for part in parts)
    says_more = whole.verdict is Verdict.STUCK or not parts
    if says_more or (whole.verdict is not Verdict.HEALTHY and not is_ill):
        return [whole, *parts]
    return list(parts)


def worst(diagnoses: Iterable[Diagnosis]) -> Diagnosis:
    """Return the most urgent diagnosis; the first one of several with the same verdict."""
    return min(diagnoses, key=lambda diagnosis: WORST.index(diagnosis.verdict))


def _first(observed: Observed, causes: Sequence[Cause] = CATALOGUE) -> tuple[Cause, Finding] | None:
    for cause in causes:
        finding = cause.find(observed)
        if finding is not None:
            return cause, finding
    return None


def _by_cause(observed: Observed, selection: Selection, cause: Cause, finding: Finding) -> Diagnosis:
    view, verdict = observed.view, finding.verdict or cause.verdict
    context: tuple[str, ...] = ()
    has_kubectl = bool(observed.commands.kubectl)
    if view.is_updating and not cause.code.startswith("LWS-E08") and cause.verdict is Verdict.STUCK:
        context = (f"the rollout waits for it: {view.updated} of {counted(view.desired, 'group')} updated",)
    return Diagnosis(
        target=str(selection),
        verdict=verdict,
        patience=cause.patience if verdict is Verdict.PROGRESSING else None,
        sentence=finding.sentence,
        code=cause.code,
        title=cause.title,
        subject=finding.subject,
        evidence=(*finding.evidence, *context),
        steps=tuple(step for step in finding.steps if has_kubectl or KUBECTL not in step),
        unread=_unread(observed),
        log=finding.log,
        statement=finding.statement,
        namespace=view.namespace,
    )


def _healthy(observed: Observed, selection: Selection) -> Diagnosis:
    view = observed.view
    complete = [
        group for group in view.groups if group.end is GroupEnd.COMPLETE and selection.group in (None, group.name)
    ]
    if selection.group is not None:
        text = f"{selection} is {'complete' if complete else 'ready'}"
    elif view.is_complete:
        text = f"{counted(len(complete), 'group')} of {view.desired} complete"
    elif _is_done(observed, selection):
        text = outcome.count_of_ended(view)
    else:
        surplus = sum(group.index >= view.desired for group in view.groups)
        text = f"{min(view.ready, view.desired)} of {counted(view.desired, 'group')} ready, all of the newest revision"
        text += f"; {surplus} more {'is' if surplus == 1 else 'are'} being removed" if surplus else ""
        partition = int(configuration(view).get("partition") or 0)
        text += f" (partition {partition})" if partition else ""
    blocked = evictions.blocked(view, selection.group, observed.get(POD_DISRUPTION_BUDGETS))
    text += f"; {blocked}" if blocked else ""
    return Diagnosis(target=str(selection), verdict=Verdict.HEALTHY, sentence=text, namespace=view.namespace)


def _unknown(observed: Observed, selection: Selection) -> Diagnosis:
    """Return a diagnosis with the observed facts only, if no cause is known."""
    return Diagnosis(
        target=str(selection),
        verdict=Verdict.UNKNOWN,
        sentence="no known cause explains it",
        code=UNKNOWN,
        title="the cause is not known",
        subject=own(observed),
        evidence=ranks.states((rank for _, rank in observed.unready), 5),
        steps=(observed.lws(f"describe {selection}"),),
        unread=_unread(observed),
        namespace=observed.view.namespace,
    )


def _unread(observed: Observed) -> tuple[str, ...]:
    return tuple(sorted(resource.group_resource for resource in observed.unread))
