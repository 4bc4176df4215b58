"""Determines whether the last diagnosis of a set still applies to the current view of the set. Pure.

The input is a set, and its last diagnosis. The output is the diagnosis to show. A set that has reached its desired
state in the meantime is healthy, regardless of the last diagnosis.
"""

from datetime import datetime
from functools import partial

from kuberuntime.objects import meta
from kuberuntime.texts import errorboundary
from lwsctl.diagnosis import diagnose, groupmoves
from lwsctl.diagnosis.catalogue import NO_CAUSE
from lwsctl.diagnosis.facts import selection_verdict
from lwsctl.diagnosis.observed import Commands, Observed
from lwsctl.model.crashes import is_failing
from lwsctl.model.diagnosis import Diagnosis
from lwsctl.model.disaggregatedset import SetView, Shown
from lwsctl.model.health import AS_DESIRED, NEEDS_USER, Verdict
from lwsctl.model.leaderworkerset import View
from lwsctl.views import reasons
from lwsctl.views.selection import Selection


def diagnose_view(view: View, last: Diagnosis | None, now: datetime, commands: Commands) -> Diagnosis:
    """Return the diagnosis of a LeaderWorkerSet. If there was no previous diagnosis, the state is progressing."""
    return errorboundary.attempt(partial(_diagnose_view, view, last, now, commands), partial(_failed_diagnosis, view))


def _diagnose_view(view: View, last: Diagnosis | None, now: datetime, commands: Commands) -> Diagnosis:
    selection = Selection(view.name)
    observed = Observed(view=view, now=now, commands=commands)
    verdict = selection_verdict(view, selection, now)
    if verdict in AS_DESIRED and not groupmoves.is_moving(view):
        return diagnose.diagnose(observed, selection)
    if is_failing(view, now) and (last is None or last.verdict not in (verdict, *NEEDS_USER)):
        last = diagnose.diagnose(observed, selection)
    if last is None or last.verdict in AS_DESIRED:
        return _in_progress(view, reasons.brief(view))
    return last


def diagnose_disaggregatedset(set_view: SetView, last: Diagnosis | None) -> Diagnosis:
    """Return the diagnosis of a DisaggregatedSet, which is derived from the diagnoses of its parts."""
    return errorboundary.attempt(
        partial(_diagnose_disaggregatedset, set_view, last), partial(_failed_diagnosis, set_view)
    )


def _diagnose_disaggregatedset(set_view: SetView, last: Diagnosis | None) -> Diagnosis:
    own = last or _in_progress(set_view, set_view.rollout)
    if set_view.is_settled and own.verdict not in AS_DESIRED and not meta.is_deleting(set_view.object):
        own = Diagnosis(
            target=set_view.name, verdict=Verdict.HEALTHY, sentence="complete", namespace=set_view.namespace
        )
    diagnosis = diagnose.worst(diagnose.diagnose_disaggregatedset(own, [part.diagnosis for part in set_view.parts]))
    is_fine = own.verdict is diagnosis.verdict is Verdict.HEALTHY  # the view of a part contains only its own groups
    return own if is_fine else diagnosis


def _failed_diagnosis(item: Shown, error: str) -> Diagnosis:
    return Diagnosis(
        target=item.name, namespace=item.namespace, verdict=Verdict.UNKNOWN, sentence=error, code=NO_CAUSE.code
    )


def _in_progress(item: Shown, sentence: str) -> Diagnosis:
    return Diagnosis(
        target=item.name,
        namespace=item.namespace,
        verdict=Verdict.PROGRESSING,
        sentence=sentence or "its status is not final yet",
    )
