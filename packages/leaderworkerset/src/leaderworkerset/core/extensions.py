"""Extends the upstream rules of LeaderWorkerSets and groups with hooks and tables.

A decision takes `Extensions` as an argument, so the core does not import capabilities. Each function of a hook is called
at one place. The default function does what the Go controller does. If several capabilities add functions whose order
does not matter, the functions form a table. A capability (`leaderworkerset/capabilities/`) is an `Extensions` with a
name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import CONTROLLER_REVISIONS
from kuberuntime.plan import Action, guarded_delete
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.leaderworkerset.decision import LeaderDecision, SetFacts
from leaderworkerset.core.leaderworkerset.groupstate import GroupFacts
from leaderworkerset.core.policies.failures import FindFault, RestartExemption
from leaderworkerset.core.policies.placement import Prefer, prefer_none
from leaderworkerset.core.policies.policy import NOTHING, LiveGroup, Policy, PolicyDecision
from leaderworkerset.core.policies.recreation import UPSTREAM_RESTARTS, RestartSettings

Errors: TypeAlias = Callable[[LeaderWorkerSet], Iterable[FieldError]]
"""Returns the errors in the settings of a LeaderWorkerSet."""

Warnings: TypeAlias = Callable[[Mapping[str, str]], Iterable[str]]
"""Returns warnings about annotations."""


class SetExpiry(NamedTuple):
    """The actions that delete a LeaderWorkerSet now, or the seconds until the next reconciliation."""

    actions: tuple[Action, ...] = ()
    seconds: float | None = None


def _retire(_facts: SetFacts, outdated: Sequence[JSONObject]) -> Sequence[Action]:
    return [guarded_delete(CONTROLLER_REVISIONS, revision) for revision in outdated]


def _decide_nothing(_group: LiveGroup) -> PolicyDecision:
    return NOTHING


class SetHook(Struct, frozen=True, kw_only=True):
    """The hooks for reconciling a LeaderWorkerSet, in the order in which they are called.

    `prepare`, `deletes_leaders`, `expire` and `complete` are called only for objects with a sign. Signs are annotations
    in `settings`, status conditions in `conditions`, groups that are being updated in place, and observed state.
    """

    settings: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    prepare: Callable[[SetFacts], SetFacts] = lambda facts: facts
    """Adds the route of groups that are updated in place, and the groups that surge groups replace."""
    deletes_leaders: Callable[[SetFacts], bool] = lambda _facts: False
    """Returns whether `complete` can delete leaders now, so that they must first be read from the API server."""
    expire: Callable[[SetFacts, datetime], SetExpiry] = lambda _facts, _now: SetExpiry()
    """Determines whether the LeaderWorkerSet must be deleted immediately or later."""
    leader_annotations: Callable[[LeaderWorkerSet, JSONObject | None], dict[str, str]] = lambda _lws, _template: {}
    """Returns annotations for the leader template, based on the existing template of this revision."""
    complete: Callable[[SetFacts, LeaderDecision, datetime], LeaderDecision] = lambda _facts, leaders, _now: leaders
    """Adds the groups that are updated in place or moved now to the actions for leaders."""
    retire: Callable[[SetFacts, Sequence[JSONObject]], Sequence[Action]] = _retire
    """Returns the actions for unused revisions (R-REV-14)."""


class GroupHook(Struct, frozen=True, kw_only=True):
    """The hooks for describing and reconciling a group, in the order in which they are called."""

    policy: Policy = Policy()
    """Modifies pods at admission."""
    describe: Callable[[GroupFacts, JSONObject, JSONObject | None], GroupFacts] = lambda facts, _leader, _workers: facts
    """Modifies the description of a group, based on its leader and its worker StatefulSet."""
    required_nodes: Callable[[LiveGroup], set[str]] = lambda _group: set()
    """Returns the names of the nodes that must be observed."""
    without_set: Callable[[LiveGroup], PolicyDecision] = _decide_nothing
    """Handles a group whose LeaderWorkerSet is deleted. Other steps are skipped."""
    first: Callable[[LiveGroup], PolicyDecision] = _decide_nothing
    """This hook is called before all other steps."""
    before_evidence: Callable[[LiveGroup], PolicyDecision] = _decide_nothing
    """This hook is called before the pods of an exhausted group are preserved as evidence."""
    before_deletion: Callable[[LiveGroup], PolicyDecision] = _decide_nothing
    """This hook is called before a terminating leader is ignored."""
    before_restart: Callable[[LiveGroup], PolicyDecision] = _decide_nothing
    """This hook is called before the restart policy is evaluated."""
    restarts: Callable[[LiveGroup], RestartSettings] = lambda _group: UPSTREAM_RESTARTS
    """Returns the settings that apply when a failed group is recreated, except for the limit in the spec."""
    prefer: Prefer = prefer_none
    """Returns the node preferences of a leader."""
    worker_annotations: Callable[[JSONObject, JSONObject | None], Mapping[str, str]] = lambda _obj, _record: {}
    """Returns annotations for the worker template, based on the LeaderWorkerSet and the group record."""
    last: Callable[[LiveGroup], tuple[Action, ...]] = lambda _group: ()
    """Returns the actions after all objects of the group except the workers."""


class Extensions(Struct, frozen=True, kw_only=True):
    """The extensions of one capability or of all capabilities. Only the combined extensions have hooks."""

    errors: tuple[Errors, ...] = ()
    warnings: tuple[Warnings, ...] = ()
    excuses: tuple[RestartExemption, ...] = ()
    fault_finders: tuple[FindFault, ...] = ()
    sets: SetHook = SetHook()
    groups: GroupHook = GroupHook()


UPSTREAM: Final = Extensions()
"""The upstream contract without capabilities."""


def combine(capabilities: Sequence[Extensions], sets: SetHook, groups: GroupHook) -> Extensions:
    """Return the combined tables of the capabilities, and the hooks that call their other functions."""
    tables = ("errors", "warnings", "excuses", "fault_finders")
    rows = {table: tuple(chain.from_iterable(getattr(row, table) for row in capabilities)) for table in tables}
    return Extensions(**rows, sets=sets, groups=groups)
