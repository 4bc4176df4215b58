"""The diagnosis of a LeaderWorkerSet, a group or a rank: the first cause of the catalogue that matches. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from kuberuntime.objects import meta
from kuberuntime.objects.resources import POD_DISRUPTION_BUDGETS
from leaderworkerset.api.groupname import GroupEnd
from leaderworkerset.core.leaderworkerset import reading
from leaderworkerset.diagnosis import departures, evictions, ranks, storedvalues
from leaderworkerset.diagnosis.catalogue import CATALOGUE, OF_SETS
from leaderworkerset.diagnosis.causes import editedchildren, hangs
from leaderworkerset.diagnosis.causes.rollouts import configuration
from leaderworkerset.diagnosis.causes.unattended import own
from leaderworkerset.diagnosis.finding import Cause, Diagnosis, Finding, Verdict
from leaderworkerset.diagnosis.observed import KUBECTL, Observed
from leaderworkerset.views import outcome
from leaderworkerset.views.disaggregation import SetView
from leaderworkerset.views.groups import View
from leaderworkerset.views.selection import Selection, narrow
from leaderworkerset.views.wording import counted

UNKNOWN: Final = "LWS-E099"
"""The code of states that no cause of the catalogue explains."""

WORST: Final = (Verdict.STUCK, Verdict.UNKNOWN, Verdict.PROGRESSING, Verdict.HEALTHY)


def is_as_wanted(view: View, chosen: Selection) -> bool:
    """Return whether there is nothing to explain: all selected ranks are ready, on the newest revision, and stay."""
    return is_whole(view, chosen) and not departures.is_moving(view)


def is_whole(view: View, chosen: Selection) -> bool:
    """Return whether all selected ranks are ready, on the newest revision."""
    if meta.is_deleting(view.object) or reading.unreadable(view.object) or any(editedchildren.scaled_groups(view)):
        return False
    hung = [group.name for group in hangs.hung_groups(view)]
    if chosen.group is None:
        return view.is_complete or (view.is_ready and view.updated >= view.desired and not hung)
    found = [group for group in view.groups if group.name == chosen.group]
    if chosen.group in hung or any(group.end is GroupEnd.COMPLETE for group in found):
        return chosen.group not in hung
    asked = [rank for group in found for rank in group.ranks if chosen.rank in (None, rank.index)]
    return bool(asked) and all(rank.is_ready for rank in asked)


def diagnose(observed: Observed, chosen: Selection) -> Diagnosis:
    """Return the root cause of the selection, and the stored values of a whole set that admission would reject."""
    diagnosis = _diagnose(observed, chosen)
    if chosen.group is not None or not (errors := storedvalues.errors(observed)):
        return diagnosis
    evidence = (*diagnosis.evidence, *(f"stored, but rejected at creation: {error}" for error in errors))
    steps = (
        *diagnosis.steps,
        f"correct {errors[0].path} in the manifest, and apply it: updates do not fail until then",
    )
    return replace(diagnosis, evidence=evidence, steps=steps)


def _diagnose(observed: Observed, chosen: Selection) -> Diagnosis:
    """Return the root cause of the selection; for a rank without a cause, the cause of its group."""
    if observed.of_set is not None:
        return _of_set(observed, observed.of_set)
    if is_as_wanted(observed.view, chosen) or _is_done(observed, chosen):
        return _healthy(observed, chosen)
    cut = replace(observed, view=narrow(observed.view, Selection(chosen.name, chosen.group)))
    if chosen.rank is not None:
        alone = _first(replace(cut, rank=chosen.rank))
        if alone is not None and alone[0].verdict is Verdict.STUCK:
            return _told(observed, chosen, *alone)
    found = _first(cut)
    if found is None and is_whole(observed.view, chosen):
        return _healthy(observed, chosen)
    return _told(observed, chosen, *found) if found else _unknown(cut, chosen)


def _is_done(observed: Observed, chosen: Selection) -> bool:
    """Return whether the selected ranks run to completion, and have completed."""
    if not observed.ends or meta.is_deleting(observed.view.object):
        return False
    if chosen.group is None:
        return outcome.all_done([observed.view])
    selected = [(group, rank) for group in narrow(observed.view, chosen).groups for rank in group.ranks]
    return bool(selected) and all(outcome.has_finished(*one) for one in selected)


def _of_set(observed: Observed, chosen: SetView) -> Diagnosis:
    """Return the diagnosis of a DisaggregatedSet itself; its LeaderWorkerSets have their own diagnoses."""
    selection = Selection(chosen.name)
    if chosen.is_settled and not meta.is_deleting(chosen.object):
        text = f"{', '.join(map(str, chosen.roles))} ready, all of the newest revision"
        told = Diagnosis(target=str(selection), verdict=Verdict.HEALTHY, sentence=text, namespace=chosen.namespace)
    else:
        found = _first(observed, OF_SETS)
        told = _told(observed, selection, *found) if found else _unknown(observed, selection)
    return replace(told, owner=chosen.name)


def of_whole(chosen: Diagnosis, parts: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Return the findings of a DisaggregatedSet: its own, unless a part explains the state better."""
    is_ill = any(part.verdict is not Verdict.HEALTHY for part in parts)
    says_more = chosen.verdict is Verdict.STUCK or not parts
    if says_more or (chosen.verdict is not Verdict.HEALTHY and not is_ill):
        return [chosen, *parts]
    return list(parts)


def worst(diagnoses: Iterable[Diagnosis]) -> Diagnosis:
    """Return the most urgent diagnosis; the first one of several with the same verdict."""
    return min(diagnoses, key=lambda one: WORST.index(one.verdict))


def _first(observed: Observed, causes: Sequence[Cause] = CATALOGUE) -> tuple[Cause, Finding] | None:
    for cause in causes:
        finding = cause.find(observed)
        if finding is not None:
            return cause, finding
    return None


def _told(observed: Observed, chosen: Selection, cause: Cause, finding: Finding) -> Diagnosis:
    view = observed.view
    context: tuple[str, ...] = ()
    has_kubectl = bool(observed.commands.kubectl)
    if view.is_updating and not cause.code.startswith("LWS-E08") and cause.verdict is Verdict.STUCK:
        context = (f"the rollout waits for it: {view.updated} of {counted(view.desired, 'group')} updated",)
    return Diagnosis(
        target=str(chosen),
        verdict=finding.verdict or cause.verdict,
        sentence=finding.sentence,
        code=cause.code,
        title=cause.title,
        subject=finding.subject,
        evidence=(*finding.evidence, *context),
        steps=tuple(step for step in finding.steps if has_kubectl or KUBECTL not in step),
        unread=_unread(observed),
        log=finding.log,
        namespace=view.namespace,
    )


def _healthy(observed: Observed, chosen: Selection) -> Diagnosis:
    view = observed.view
    ended = [group for group in view.groups if group.end is GroupEnd.COMPLETE and chosen.group in (None, group.name)]
    if chosen.group is not None:
        text = f"{chosen} is {'complete' if ended else 'ready'}"
    elif view.is_complete:
        text = f"{counted(len(ended), 'group')} of {view.desired} complete"
    elif _is_done(observed, chosen):
        text = outcome.count_of_ended(view)
    else:
        surplus = sum(group.index >= view.desired for group in view.groups)
        text = f"{min(view.ready, view.desired)} of {counted(view.desired, 'group')} ready, all of the newest revision"
        text += f"; {surplus} more {'is' if surplus == 1 else 'are'} being removed" if surplus else ""
        partition = int(configuration(view).get("partition") or 0)
        text += f" (partition {partition})" if partition else ""
    blocked = evictions.blocked(view, chosen.group, observed.get(POD_DISRUPTION_BUDGETS))
    text += f"; {blocked}" if blocked else ""
    return Diagnosis(target=str(chosen), verdict=Verdict.HEALTHY, sentence=text, namespace=view.namespace)


def _unknown(observed: Observed, chosen: Selection) -> Diagnosis:
    """Return a diagnosis with the observed facts only, if no cause is known."""
    return Diagnosis(
        target=str(chosen),
        verdict=Verdict.UNKNOWN,
        sentence="no known cause explains it",
        code=UNKNOWN,
        title="the cause is not known",
        subject=own(observed),
        evidence=ranks.states((rank for _, rank in observed.unready), 5),
        steps=(observed.lws(f"describe {chosen}"),),
        unread=_unread(observed),
        namespace=observed.view.namespace,
    )


def _unread(observed: Observed) -> tuple[str, ...]:
    return tuple(sorted(one.group_resource for one in observed.unread))
