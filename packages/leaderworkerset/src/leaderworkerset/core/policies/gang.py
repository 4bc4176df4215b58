"""The interface for gang scheduling, in which either all pods of a group are bound or none (contract section 11).

A `Gang` represents the gang schedulers that may be used. They follow from the configuration and from the kinds that the
API server serves. Reading those is I/O and happens outside the core, which gets the chosen `Gang`, or `NO_GANG`. It is
called in five places:

- admission of a LeaderWorkerSet: `errors`, combinations that would never start
- admission of a pod: `mark`, the link from the pod to its group's object, and the record of the scheduler on the leader
- reconcile of a group: `decide`, the group's object before its workers, whatever its size
- reconcile of a LeaderWorkerSet with `spec.scheduling`: `prepare`, the shared objects of its groups, before its leaders
- reconcile of a LeaderWorkerSet: `outdated`, at the end of an update

The pods of a group follow their leader: workers are marked for the scheduler that their leader was marked for. Group
objects are created, never updated. A failed action ends the plan, so no workers are created without their object.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, Protocol

from msgspec import Struct

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Action, Delete
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet
from leaderworkerset.core.policies import exclusive
from leaderworkerset.core.policies.celmutations import PodRule
from leaderworkerset.core.policies.podedits import non_empty
from leaderworkerset.core.policies.policy import (
    NOT_SCHEDULED,
    LiveGroup,
    Policy,
    PolicyDecision,
    SchedulingFailure,
    SchedulingObjects,
    Template,
)

NONE: Final = "none"
"""The annotation value of a LeaderWorkerSet whose pods are scheduled individually."""

INHERITED: Final = (
    labels.GANG_SCHEDULER,
    labels.GANG_GROUP,
    labels.WORKLOAD_AWARE_SCHEDULING,
    labels.WORKLOAD_NAME,
)

CHOICE: Final = f"metadata.annotations[{labels.GANG_SCHEDULER}]"


class GangGroup(Struct, frozen=True):
    """A live group, and its LeaderWorkerSet at the leader's revision, from which its pods are created."""

    live: LiveGroup
    revised: LeaderWorkerSet


class Support(Struct, frozen=True):
    """How `spec.scheduling` is served: feature gate, provider, and the kinds that the API server does not serve.

    `provider` is empty if none is configured. `missing` are the kinds of `scheduling.k8s.io` that are not served.
    """

    is_enabled: bool = False
    provider: str = ""
    missing: Sequence[str] = ()


class GangSet(Struct, frozen=True, kw_only=True):
    """The observed state of a LeaderWorkerSet with `spec.scheduling`.

    `sizes` are the numbers of pods of its live groups, 0 for a group that stays gated. `known` are the Workload and the
    PodGroup that its groups share.
    """

    obj: JSONObject
    lws: LeaderWorkerSet
    now: datetime
    sizes: Sequence[int] = ()
    known: SchedulingObjects = NOT_SCHEDULED


class Preparation(Struct, frozen=True):
    """The actions that precede those for leaders, or the failure that prevents changes of leaders.

    `is_done` is true when all shared objects of the groups exist.
    """

    actions: tuple[Action, ...] = ()
    failure: SchedulingFailure | None = None
    is_done: bool = False


class Gang(Protocol):
    """The gang schedulers that may be used."""

    @property
    def support(self) -> Support:
        """Return how `spec.scheduling` is served."""

    @property
    def resources(self) -> Sequence[Resource]:
        """Return the kinds that the gang schedulers read and write."""

    @property
    def opens_gates(self) -> bool:
        """Return whether pods may wait for the built-in gate, so that a controller must remove the gate."""

    @property
    def rule(self) -> PodRule:
        """Return what `mark` does as expressions, with a condition for the pods that they cover."""

    def errors(self, lws: LeaderWorkerSet, old: LeaderWorkerSet | None) -> Sequence[FieldError]:
        """Return the errors of a new or changed LeaderWorkerSet that the selected scheduler cannot schedule."""

    def mark(self, pod: JSONObject, request: str) -> JSONObject:
        """Return the admitted pod with the link to its group's object. `request` is unique to this admission."""

    def decide(self, group: GangGroup) -> PolicyDecision:
        """Create the objects that the scheduler needs for one group. Delay the workers until they exist."""

    def prepare(self, whole: GangSet) -> Preparation:
        """Create the shared objects of groups with `spec.scheduling`, and delete shared objects that no group uses."""

    def outdated(self, observed: Sequence[JSONObject], revisions: Collection[str]) -> Sequence[Delete]:
        """Return deletions of objects that these revisions do not use and the garbage collector does not delete."""


def members_to_start(lws: LeaderWorkerSet) -> int:
    """Return the initial number of pods in a group: all pods, or only the leader if workers wait for it (R-GANG-4).

    With exclusive placement, workers also wait for the node of their leader. A scheduler that waits for the workers
    before it binds the leader would wait forever.
    """
    awaits = lws.spec.startup_policy.awaits_leader or exclusive.is_exclusive(lws)
    return 1 if awaits else lws.size


UNSUPPORTED: Final = Preparation(
    failure=SchedulingFailure(
        "UnsupportedProviderCapability", "spec.scheduling requires a configured scheduler provider"
    )
)
"""The support of a manager that does not apply `spec.scheduling`."""


class NoGang(Struct, frozen=True):
    """Gang scheduling is disabled. Pods are scheduled individually, and nothing is marked, created or removed."""

    support: Support = Support()

    @property
    def resources(self) -> Sequence[Resource]:
        """Return no kinds."""
        return ()

    @property
    def opens_gates(self) -> bool:
        """Return False, because pods are not gated."""
        return False

    @property
    def rule(self) -> PodRule:
        """Return the rule that changes nothing."""
        return PodRule()

    def errors(self, lws: LeaderWorkerSet, old: LeaderWorkerSet | None) -> Sequence[FieldError]:
        """Return an error if a scheduler is newly selected, because it would have no effect."""
        choice = lws.annotations.get(labels.GANG_SCHEDULER, NONE)
        if choice == NONE or (old is not None and old.annotations.get(labels.GANG_SCHEDULER) == choice):
            return ()
        text = (
            "the manager's configuration names no gang scheduler: set gangSchedulingManagement.schedulerProvider there"
        )
        return (invalid(CHOICE, choice, text),)

    def mark(self, pod: JSONObject, _request: str) -> JSONObject:
        """Return the pod unchanged."""
        return pod

    def decide(self, _group: GangGroup) -> PolicyDecision:
        """Decide nothing."""
        return PolicyDecision()

    def prepare(self, _whole: GangSet) -> Preparation:
        """Return the failure that no scheduler applies `spec.scheduling`."""
        return UNSUPPORTED

    def outdated(self, _observed: Sequence[JSONObject], _revisions: Collection[str]) -> Sequence[Delete]:
        """Return no deletions."""
        return ()


NO_GANG: Final[Gang] = NoGang()


def annotations(template: Template) -> dict[str, str]:
    """Return the selected scheduler, so that admission of pods does not read other objects."""
    return non_empty(template.live, labels.GANG_SCHEDULER)


def inherited(leader: JSONObject) -> dict[str, str]:
    """Return the annotations that workers inherit from their leader: scheduler, level and group name."""
    own = meta.annotations(leader)
    return {key: own[key] for key in INHERITED if own.get(key)}


POLICY: Final = Policy(annotations=annotations)
