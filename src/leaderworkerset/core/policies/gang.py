"""Gang scheduling: where a scheduler that binds all pods of a group, or none, takes part (contract section 11).

A `Gang` stands for the gang schedulers that may be used. Which ones follows from the configuration and from what the API
server serves; finding that out is I/O and happens outside the core, which gets the chosen `Gang`, or `NO_GANG`. It is
asked in four places:

- admission of a LeaderWorkerSet: `errors`, combinations that would never start;
- admission of a pod: `mark`, the link from the pod to its group's object, and the record of the scheduler on the leader;
- reconcile of a group: `decide`, the group's object before its workers, whatever its size;
- reconcile of a LeaderWorkerSet: `outdated`, at the end of an update.

The pods of a group follow their leader: whichever scheduler it was marked for, its workers are marked for, too. Group
objects are created, never updated. An action that fails ends the plan, so no workers appear without their object.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kuberuntime.objects import meta
from kuberuntime.objects.field import FieldError, invalid
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Delete
from leaderworkerset.api import labels
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, StartupPolicy
from leaderworkerset.core.policies import exclusive
from leaderworkerset.core.policies.edits import non_empty
from leaderworkerset.core.policies.policy import Decision, LiveGroup, Policy, Template

NONE: Final = "none"
"""The choice of a LeaderWorkerSet whose pods are scheduled one by one."""

CHOICE: Final = f"metadata.annotations[{labels.GANG_SCHEDULER}]"


@dataclass(frozen=True, slots=True)
class GangGroup:
    """A live group, and its LeaderWorkerSet with the content of the leader's revision, which its pods are made from."""

    live: LiveGroup
    revised: LeaderWorkerSet


class Gang(Protocol):
    """The schedulers of whole groups that may be used."""

    @property
    def resources(self) -> Sequence[Resource]:
        """Return the kinds that they read and write."""
        ...

    @property
    def opens_gates(self) -> bool:
        """Return whether pods may wait for the built-in gate, which somebody has to open then."""
        ...

    def errors(self, lws: LeaderWorkerSet, old: LeaderWorkerSet | None) -> Sequence[FieldError]:
        """Return what of a new or changed LeaderWorkerSet cannot be scheduled in the chosen way."""
        ...

    def mark(self, pod: JSONObject, request: str) -> JSONObject:
        """Return the admitted pod with the link to its group's object; `request` is unique to this admission."""
        ...

    def decide(self, group: GangGroup) -> Decision:
        """Create what the scheduler needs for one group; hold the workers back while that cannot be done."""
        ...

    def outdated(self, observed: Sequence[JSONObject], revisions: Collection[str]) -> Sequence[Delete]:
        """Return the deletion of objects that no group of these revisions uses and that nobody else removes."""
        ...


def members_to_start(lws: LeaderWorkerSet) -> int:
    """Return how many pods of a group exist at first: all, or the leader alone where workers await it (R-GANG-4).

    Workers wait for the node of their leader under exclusive placement, too: a scheduler that waited for them before it
    binds the leader would wait for ever.
    """
    awaits = lws.spec.startup_policy == StartupPolicy.LEADER_READY or exclusive.is_exclusive(lws)
    return 1 if awaits else lws.size


class NoGang:
    """Pods are scheduled one by one: nothing to mark, create or remove."""

    @property
    def resources(self) -> Sequence[Resource]:
        """Return no kinds."""
        return ()

    @property
    def opens_gates(self) -> bool:
        """Return False: no pod is gated."""
        return False

    def errors(self, lws: LeaderWorkerSet, old: LeaderWorkerSet | None) -> Sequence[FieldError]:
        """Refuse a new choice of a scheduler: it would have no effect."""
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

    def decide(self, _group: GangGroup) -> Decision:
        """Want nothing."""
        return Decision()

    def outdated(self, _observed: Sequence[JSONObject], _revisions: Collection[str]) -> Sequence[Delete]:
        """Return no deletions."""
        return ()


NO_GANG: Final[Gang] = NoGang()


def annotations(template: Template) -> dict[str, str]:
    """Return the choice of the LeaderWorkerSet, so that admission of its pods needs no look-up."""
    return non_empty(template.live, labels.GANG_SCHEDULER)


def inherited(leader: JSONObject) -> dict[str, str]:
    """Return what the template of the workers takes over from their leader: its scheduler and the name of its group."""
    own = meta.annotations(leader)
    return non_empty(own, labels.GANG_SCHEDULER) | non_empty(own, labels.GANG_GROUP)


POLICY: Final = Policy(name="gang scheduling", annotations=annotations)
