"""Defines the interface for gang scheduling, which binds all pods of a group or none (contract section 11).

A `Gang` represents the gang schedulers that may be used. They follow from the configuration and from the kinds that the
API server serves. Reading those is I/O and happens outside the core, which gets the chosen `Gang`, or `NO_GANG`. It is
called in five places:

- admission of a LeaderWorkerSet: `errors`, combinations that would never start
- admission of a pod: `mark`, the link from the pod to its group's object, and the record of the scheduler on the leader
- reconcile of a group: `decide`, the group's object before its workers, whatever its size
- reconcile of a LeaderWorkerSet with `spec.scheduling`: `prepare`, the shared objects of its groups, before its leaders
- reconcile of a LeaderWorkerSet: `delete_unused`, at the end of an update

Workers are marked for the same scheduler as their leader. Group objects are created, but never updated. A failed
action stops the plan, so that workers are not created without their object.
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
"""The annotation value that disables gang scheduling for a LeaderWorkerSet."""

INHERITED: Final = (
    labels.GANG_SCHEDULER,
    labels.GANG_GROUP,
    labels.WORKLOAD_AWARE_SCHEDULING,
    labels.WORKLOAD_NAME,
)

CHOICE: Final = f"metadata.annotations[{labels.GANG_SCHEDULER}]"


class GangGroup(Struct, frozen=True):
    """An existing group, and its LeaderWorkerSet at the leader's revision."""

    live: LiveGroup
    revised: LeaderWorkerSet


class Support(Struct, frozen=True):
    """The support for `spec.scheduling`.

    It includes the feature gate, the provider, and kinds that the API server does not serve.

    `provider` is empty if none is configured. `missing` are the kinds of `scheduling.k8s.io` that are not served.
    """

    is_enabled: bool = False
    provider: str = ""
    missing: Sequence[str] = ()


class GangSet(Struct, frozen=True, kw_only=True):
    """The observed state of a LeaderWorkerSet with `spec.scheduling`.

    `sizes` are the numbers of pods of its live groups, 0 for a group that remains gated. `known` are the Workload and
    the PodGroup that its groups share.
    """

    obj: JSONObject
    lws: LeaderWorkerSet
    now: datetime
    sizes: Sequence[int] = ()
    known: SchedulingObjects = NOT_SCHEDULED


class Preparation(Struct, frozen=True):
    """The actions that precede the actions for leaders, or a failure that prevents changes to leaders.

    `is_done` is true when all shared objects of the groups exist.
    """

    actions: tuple[Action, ...] = ()
    failure: SchedulingFailure | None = None
    is_done: bool = False


class Gang(Protocol):
    """The available gang schedulers."""

    @property
    def support(self) -> Support:
        """Return the support for `spec.scheduling`."""

    @property
    def resources(self) -> Sequence[Resource]:
        """Return the kinds that the gang schedulers use."""

    @property
    def uses_gate(self) -> bool:
        """Return whether pods can have the built-in gate. A controller must remove this gate."""

    @property
    def rule(self) -> PodRule:
        """Return the effects of `mark` as expressions, each with a condition for the applicable pods."""

    def errors(self, lws: LeaderWorkerSet, old: LeaderWorkerSet | None) -> Sequence[FieldError]:
        """Return the errors of a new or updated LeaderWorkerSet that the selected scheduler does not support."""

    def mark(self, pod: JSONObject, request: str) -> JSONObject:
        """Return the admitted pod with a link to the group object. `request` is unique to this admission."""

    def decide(self, group: GangGroup) -> PolicyDecision:
        """Create the scheduler objects for one group. Delay the workers until they exist."""

    def prepare(self, gang_set: GangSet) -> Preparation:
        """Create the shared objects of groups with `spec.scheduling`, and delete unused shared objects."""

    def delete_unused(self, observed: Sequence[JSONObject], revisions: Collection[str]) -> Sequence[Delete]:
        """Return deletions of objects that are unused by these revisions and not garbage-collected."""


def initial_pod_count(lws: LeaderWorkerSet) -> int:
    """Return the initial pods of a group, which are all pods, or only the leader if workers wait for it (R-GANG-4).

    With exclusive placement, workers also wait for the node of their leader. A scheduler that waits for the workers
    before it binds the leader would wait forever.
    """
    awaits = lws.spec.startup_policy.waits_for_leader or exclusive.is_exclusive(lws)
    return 1 if awaits else lws.size


UNSUPPORTED: Final = Preparation(
    failure=SchedulingFailure(
        "UnsupportedProviderCapability", "spec.scheduling requires a configured scheduler provider"
    )
)
"""A manager without support for `spec.scheduling`."""


class NoGang(Struct, frozen=True):
    """Disables gang scheduling. Pods are scheduled individually, and no objects or marks are written."""

    support: Support = Support()

    @property
    def resources(self) -> Sequence[Resource]:
        """Return no kinds."""
        return ()

    @property
    def uses_gate(self) -> bool:
        """Return False, because pods do not have the gate."""
        return False

    @property
    def rule(self) -> PodRule:
        """Return a rule without changes."""
        return PodRule()

    def errors(self, lws: LeaderWorkerSet, old: LeaderWorkerSet | None) -> Sequence[FieldError]:
        """Return an error for a new scheduler selection, because it would have no effect."""
        choice = lws.metadata.annotations.get(labels.GANG_SCHEDULER, NONE)
        if choice == NONE or (old is not None and old.metadata.annotations.get(labels.GANG_SCHEDULER) == choice):
            return ()
        text = (
            "the manager does not have a gang scheduler. Set gangSchedulingManagement.schedulerProvider in its "
            "configuration"
        )
        return (invalid(CHOICE, choice, text),)

    def mark(self, pod: JSONObject, _request: str) -> JSONObject:
        """Return the pod unchanged."""
        return pod

    def decide(self, _group: GangGroup) -> PolicyDecision:
        """Return no actions."""
        return PolicyDecision()

    def prepare(self, _gang_set: GangSet) -> Preparation:
        """Return a failure, because `spec.scheduling` requires a scheduler."""
        return UNSUPPORTED

    def delete_unused(self, _observed: Sequence[JSONObject], _revisions: Collection[str]) -> Sequence[Delete]:
        """Return no deletions."""
        return ()


NO_GANG: Final[Gang] = NoGang()


def annotations(template: Template) -> dict[str, str]:
    """Return the selected scheduler, so that pod admission does not require other objects."""
    return non_empty(template.live, labels.GANG_SCHEDULER)


def inherited_annotations(leader: JSONObject) -> dict[str, str]:
    """Return the annotations that workers inherit from their leader, which are scheduler, level and group name."""
    own = meta.annotations(leader)
    return {key: own[key] for key in INHERITED if own.get(key)}


POLICY: Final = Policy(annotations=annotations)
