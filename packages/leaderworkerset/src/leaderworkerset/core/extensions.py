"""The extension points for capabilities (`leaderworkerset/capabilities/`). They are empty by default.

A decision takes `Extensions` as an argument, so the core does not import capabilities. Each attribute is an extension
point. Its functions are called in the order of the capability table. Extension points are declared only here. A
capability is an `Extensions` with a name, and `together` joins several.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Action
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset.decision import LeaderDecision, SetFacts
from leaderworkerset.core.leaderworkerset.groupindex import GroupIndex, RolloutRoute
from leaderworkerset.core.leaderworkerset.groupstate import Extend
from leaderworkerset.core.policies.failures import Excuse, FindFault
from leaderworkerset.core.policies.placement import NO_PLACEMENT, NodePlacement
from leaderworkerset.core.policies.policy import LiveGroup, Policy, PolicyDecision
from leaderworkerset.core.policies.recreation import UPSTREAM_RESTARTS, RestartSettings


class GroupPlace(Enum):
    """The extension points of the group reconciler, in order (`core/pod/reconcile.py`)."""

    WITHOUT_SET = auto()
    """If the LeaderWorkerSet is deleted or terminating. No other steps are performed."""
    FIRST = auto()
    """Before all other steps."""
    OVER = auto()
    """Before the pods of an exhausted group are preserved as evidence."""
    ENDING = auto()
    """Before a terminating leader is ignored."""
    RUNNING = auto()
    """Before the restart policy."""
    COMPLETE = auto()
    """After all objects of the group except the workers."""


class GroupStep(NamedTuple):
    """A step of the group reconciler."""

    place: GroupPlace
    decide: Callable[[LiveGroup], PolicyDecision]


class SetExpiry(NamedTuple):
    """The actions that delete a LeaderWorkerSet now, or the seconds until the next reconciliation."""

    actions: tuple[Action, ...] = ()
    seconds: float | None = None


SetEnd: TypeAlias = Callable[[SetFacts, datetime], SetExpiry]
"""Determines whether a LeaderWorkerSet is deleted, before its leaders are reconciled."""

SetFold: TypeAlias = Callable[[SetFacts, GroupIndex], GroupIndex]
"""Changes the group summary for a rollout of leaders with ordinals."""

FindRoute: TypeAlias = Callable[[SetFacts, GroupIndex], tuple[RolloutRoute | None, GroupIndex]]
"""Returns the in-place update to the revision, or None if all groups are recreated, and a group summary."""

SetStep: TypeAlias = Callable[[SetFacts, LeaderDecision, datetime], LeaderDecision]
"""Modifies the actions for leaders."""

Retire: TypeAlias = Callable[[SetFacts, Sequence[JSONObject]], Sequence[Action]]
"""Handles revisions that no group uses, together with the history after `OnDemand.HISTORY` was read."""

FindRestarts: TypeAlias = Callable[[LiveGroup], RestartSettings]
"""Returns how a failed group is recreated, except for the limit in the spec."""

Errors: TypeAlias = Callable[[LeaderWorkerSet], Iterable[FieldError]]
"""Returns the errors in the settings of a LeaderWorkerSet."""

Warnings: TypeAlias = Callable[[Mapping[str, str]], Iterable[str]]
"""Returns warnings about annotations."""


def upstream_restarts(_group: LiveGroup) -> RestartSettings:
    """Return the upstream settings, with which every failure immediately recreates the group."""
    return UPSTREAM_RESTARTS


class Extensions(Struct, frozen=True, kw_only=True):
    """The functions of one or all capabilities by extension point."""

    errors: tuple[Errors, ...] = ()
    warnings: tuple[Warnings, ...] = ()
    policies: tuple[Policy, ...] = ()
    placement: NodePlacement = NO_PLACEMENT
    extend: tuple[Extend, ...] = ()
    find_route: FindRoute | None = None
    restarts: FindRestarts = upstream_restarts
    excuses: tuple[Excuse, ...] = ()
    fault_finders: tuple[FindFault, ...] = ()
    retire: Retire | None = None
    set_ends: tuple[SetEnd, ...] = ()
    set_folds: tuple[SetFold, ...] = ()
    set_steps: tuple[SetStep, ...] = ()
    group_steps: tuple[GroupStep, ...] = ()
    nodes: tuple[Callable[[LiveGroup], set[str]], ...] = ()

    def nodes_of(self, group: LiveGroup) -> set[str]:
        """Return the names of the nodes that are required to reconcile a group."""
        return {name for find in self.nodes for name in find(group)}

    def group_decisions(self, group: LiveGroup, place: GroupPlace) -> Iterator[PolicyDecision]:
        """Yield the group decisions at an extension point."""
        return (step.decide(group) for step in self.group_steps if step.place is place)

    def setting_errors(self, lws: LeaderWorkerSet) -> Sequence[FieldError]:
        """Return the errors of all settings."""
        return [error for find in self.errors for error in find(lws)]


UPSTREAM: Final = Extensions()
"""The upstream contract without capabilities."""

SINGLE: Final = {
    "placement": "place groups",
    "restarts": "set how groups are recreated",
    "find_route": "find a route",
    "retire": "retire revisions",
}
"""The exclusive extension points, which only one capability can use, and their purposes."""


def together(capabilities: Mapping[str, Extensions]) -> Extensions:
    """Return the combined extensions. Raise ValueError if two capabilities use an exclusive extension point."""
    places: dict[str, Any] = {}
    for place in Extensions.__struct_fields__:
        none = getattr(UPSTREAM, place)
        parts = {
            name: part for name, extensions in capabilities.items() if (part := getattr(extensions, place)) != none
        }
        if place not in SINGLE:
            places[place] = tuple(chain.from_iterable(parts.values()))
        elif len(parts) > 1:
            raise ValueError(f"only one capability may {SINGLE[place]}: {' and '.join(parts)} do")
        else:
            places[place] = next(iter(parts.values()), none)
    return Extensions(**places)
