"""The shared state that all pages show: sets with their groups, and why they are not as wanted. Pure.

The views are those of `lws get`, the diagnoses those of `lws explain`. A diagnosis is read after a change, so it may be
a moment older than its view: a view that is as wanted meanwhile is healthy, whatever was found before.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import partial

from msgspec import Struct, field

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.texts import errorboundary
from lwsctl.dashboard.setorder import Place, SetOrder
from lwsctl.diagnosis import groupmoves
from lwsctl.diagnosis.catalogue import NO_CAUSE
from lwsctl.diagnosis.diagnose import diagnose, of_whole, worst
from lwsctl.diagnosis.facts import verdict_of
from lwsctl.diagnosis.finding import Diagnosis
from lwsctl.diagnosis.observed import Commands, Observed
from lwsctl.views import reasons
from lwsctl.views.disaggregatedset import SetView
from lwsctl.views.groups import MISSING, Group, Rank, View
from lwsctl.views.health.crashes import is_failing
from lwsctl.views.health.verdict import AS_DESIRED, NEEDS_USER, Verdict
from lwsctl.views.selection import Selection


class CellState(StrEnum):
    """The condition of a rank or a group, which the color and glyph of its cell show."""

    READY = "ready"
    COMPLETED = "completed"
    STARTING = "starting"
    ENDING = "ending"
    MISSING = "missing"
    PROBLEM = "problem"


def of_rank(rank: Rank) -> CellState:
    """Return the condition of a rank."""
    if rank.is_ready:
        return CellState.READY
    if rank.state == "Completed":
        return CellState.COMPLETED
    if ends_normally(rank):
        return CellState.ENDING
    if rank.startup is not None and rank.state == "Running" and not rank.deaths:
        return CellState.STARTING  # a probe that fails before the first success is no problem yet
    if reasons.is_problem(rank):
        return CellState.PROBLEM
    return CellState.MISSING if rank.state == MISSING else CellState.STARTING


def ends_normally(rank: Rank) -> bool:
    """Return whether a pod is being deleted, and its containers ended as a signal ends them, or still run."""
    if rank.object is None or not meta.is_deleting(rank.object):
        return False
    ends = (
        status.get("state", {}).get("terminated") for status in meta.status(rank.object).get("containerStatuses") or ()
    )
    return all(end.get("exitCode") in podstate.STOPPED for end in ends if end)


def of_group(group: Group) -> CellState:
    """Return the condition of a group: the common condition of its ranks, a problem if a rank has one, or starting."""
    states = set(map(of_rank, group.ranks))
    if len(states) == 1:
        return states.pop()
    return CellState.PROBLEM if CellState.PROBLEM in states else CellState.STARTING


class ToldSet(Struct, frozen=True):
    """A LeaderWorkerSet and its diagnosis."""

    view: View
    told: Diagnosis


class ToldWhole(Struct, frozen=True):
    """A DisaggregatedSet, the diagnosis that explains it best, and its LeaderWorkerSets."""

    view: SetView
    told: Diagnosis
    parts: tuple[ToldSet, ...]


class Picture(Struct, frozen=True, kw_only=True):
    """All sets of a namespace (empty: of all) at one moment.

    `trouble` is the reason why it may be out of date, and `answered` the time of the last answer of the API server. `commands`
    address the same cluster.
    """

    namespace: str
    now: datetime
    views: Sequence[View] = ()
    sets: Sequence[SetView] = ()
    diagnoses: Mapping[ObjectKey, Diagnosis] = field(default_factory=dict)
    of_sets: Mapping[ObjectKey, Diagnosis] = field(default_factory=dict)
    trouble: str = ""
    answered: datetime | None = None
    order: SetOrder = SetOrder()
    commands: Commands = Commands()

    def told(self, view: View) -> ToldSet:
        """Return a LeaderWorkerSet with its diagnosis; without a diagnosis it is in progress, and in error its error."""
        return errorboundary.attempt(partial(self._told, view), lambda error: ToldSet(view, _unjudged(view, error)))

    def _told(self, view: View) -> ToldSet:
        selection = Selection(view.name)
        observed = Observed(view=view, now=self.now, commands=self.commands)
        verdict = verdict_of(view, selection, self.now)
        if verdict in AS_DESIRED and not groupmoves.is_moving(view):
            return ToldSet(view, diagnose(observed, selection))
        diagnosis = self.diagnoses.get(view.key)
        if is_failing(view, self.now):
            is_current = diagnosis is not None and diagnosis.verdict in (verdict, *NEEDS_USER)
            diagnosis = diagnosis if is_current else diagnose(observed, selection)
        if diagnosis is None or diagnosis.verdict in AS_DESIRED:
            diagnosis = _in_progress(view.name, view.namespace, reasons.brief(view))
        return ToldSet(view, diagnosis)

    def told_whole(self, whole: SetView) -> ToldWhole:
        """Return a DisaggregatedSet with its diagnosis and those of its LeaderWorkerSets."""
        return errorboundary.attempt(
            partial(self._told_whole, whole), lambda error: ToldWhole(whole, _unjudged(whole, error), parts=())
        )

    def _told_whole(self, whole: SetView) -> ToldWhole:
        parts = tuple(self.told(part.view) for part in whole.parts)
        own = self.of_sets.get(whole.key) or _in_progress(whole.name, whole.namespace, whole.rollout)
        if whole.is_settled and own.verdict not in AS_DESIRED and not meta.is_deleting(whole.object):
            own = Diagnosis(target=whole.name, verdict=Verdict.HEALTHY, sentence="complete", namespace=whole.namespace)
        diagnosis = worst(of_whole(own, [part.told for part in parts]))
        is_fine = own.verdict is diagnosis.verdict is Verdict.HEALTHY  # a part speaks of its own groups only
        return ToldWhole(whole, own if is_fine else diagnosis, parts)

    def find(self, key: ObjectKey) -> View | None:
        """Return a LeaderWorkerSet, None if it does not exist."""
        return next((view for view in self.views if view.key == key), None)

    def find_whole(self, key: ObjectKey) -> SetView | None:
        """Return a DisaggregatedSet, None if it does not exist."""
        return next((whole for whole in self.sets if whole.key == key), None)

    def told_at(self, key: ObjectKey, *, of_whole: bool) -> ToldSet | ToldWhole | None:
        """Return the set of a page with its diagnosis, None if it does not exist."""
        if of_whole:
            whole = self.find_whole(key)
            return None if whole is None else self.told_whole(whole)
        view = self.find(key)
        return None if view is None else self.told(view)

    def owners(self, key: ObjectKey, *, of_whole: bool) -> Sequence[tuple[View, tuple[str, ...]]]:
        """Return the LeaderWorkerSets of a page, and their names in places of ranks: none for a set of its own."""
        if of_whole:
            whole = self.find_whole(key)
            return whole.owners if whole is not None else ()
        view = self.find(key)
        return [(view, ())] if view is not None else ()

    def ordered(self) -> list[ToldSet | ToldWhole]:
        """Return DisaggregatedSets, and the LeaderWorkerSets that none of them owns: the most urgent first."""
        wholes = [self.told_whole(whole) for whole in self.sets]
        owned = {part.view.key for whole in wholes for part in whole.parts}
        alone = [self.told(view) for view in self.views if view.key not in owned]
        return sorted([*wholes, *alone], key=lambda item: self.order.key(place_of(item), item.told))


def place_of(item: ToldSet | ToldWhole) -> Place:
    """Return the kind, namespace and name of a set."""
    return type(item.view).__name__, item.view.namespace, item.view.name


def _unjudged(view: View | SetView, error: str) -> Diagnosis:
    return Diagnosis(
        target=view.name, namespace=view.namespace, verdict=Verdict.UNKNOWN, sentence=error, code=NO_CAUSE.code
    )


def _in_progress(name: str, namespace: str, sentence: str) -> Diagnosis:
    return Diagnosis(
        target=name,
        namespace=namespace,
        verdict=Verdict.PROGRESSING,
        sentence=sentence or "its status is not final yet",
    )
