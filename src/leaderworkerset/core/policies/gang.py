"""Gang scheduling: where a scheduler that binds all pods of a group, or none, takes part (contract section 11).

A `Gang` is one such scheduler. Which one is used follows from the configuration and from what the API server serves;
finding that out is I/O and happens outside the core, which gets the chosen `Gang`, or `NO_GANG`. It is asked in four
places:

- admission of a LeaderWorkerSet: `errors`, combinations that would never start;
- admission of a pod: `mark`, the link from the pod to its group's object;
- reconcile of a LeaderWorkerSet: `shared_objects` before the leader StatefulSet, `outdated` at the end;
- reconcile of a group: `group_objects` before its workers, whatever its size.

Group objects are created, never updated. An action that fails ends the plan, so no workers appear without their object.
"""

from collections.abc import Collection, Sequence
from typing import Final, Protocol

from kuberuntime.objects.field import FieldError
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Create, Delete
from leaderworkerset.api.leaderworkerset import LeaderWorkerSet, StartupPolicy
from leaderworkerset.core.policies.policy import LiveGroup


class Gang(Protocol):
    """A scheduler of whole groups."""

    def applies(self, lws: LeaderWorkerSet) -> bool:
        """Return whether the groups of this LeaderWorkerSet are scheduled as gangs (opt-in may be per object)."""
        ...

    def errors(self, lws: LeaderWorkerSet) -> Sequence[FieldError]:
        """Return what of the LeaderWorkerSet cannot be scheduled this way, such as workers that await their leader."""
        ...

    def mark(self, pod: JSONObject) -> JSONObject:
        """Return the admitted pod with the link to its group's object; labels and annotations are all set by then."""
        ...

    def minimum_members(self, lws: LeaderWorkerSet) -> int:
        """Return how many pods of a group must fit before any of them is bound."""
        ...

    def shared_objects(self, obj: JSONObject, lws: LeaderWorkerSet, revision: str) -> Sequence[Create]:
        """Return the objects to create for all groups of a revision; `if_absent`, or only those not observed."""
        ...

    def group_objects(self, group: LiveGroup) -> Sequence[Create]:
        """Return the objects to create for one group; `group.gang_objects` are those that exist."""
        ...

    def outdated(self, observed: Sequence[JSONObject], leaders: Collection[str]) -> Sequence[Delete]:
        """Return the deletion of objects whose leader pod is gone and that no garbage collection removes."""
        ...


def members_to_start(lws: LeaderWorkerSet) -> int:
    """Return how many pods of a group exist at first: all, or the leader alone where workers await it (R-GANG-4)."""
    return 1 if lws.spec.startup_policy == StartupPolicy.LEADER_READY else lws.size


class NoGang:
    """Pods are scheduled one by one: nothing to mark, create or remove."""

    def applies(self, _lws: LeaderWorkerSet) -> bool:
        """Return False."""
        return False

    def errors(self, _lws: LeaderWorkerSet) -> Sequence[FieldError]:
        """Return no errors."""
        return ()

    def mark(self, pod: JSONObject) -> JSONObject:
        """Return the pod unchanged."""
        return pod

    def minimum_members(self, _lws: LeaderWorkerSet) -> int:
        """Return 1: a pod starts as soon as it fits by itself."""
        return 1

    def shared_objects(self, _obj: JSONObject, _lws: LeaderWorkerSet, _revision: str) -> Sequence[Create]:
        """Return no objects."""
        return ()

    def group_objects(self, _group: LiveGroup) -> Sequence[Create]:
        """Return no objects."""
        return ()

    def outdated(self, _observed: Sequence[JSONObject], _leaders: Collection[str]) -> Sequence[Delete]:
        """Return no deletions."""
        return ()


NO_GANG: Final[Gang] = NoGang()
