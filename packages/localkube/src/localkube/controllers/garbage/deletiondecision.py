"""Evaluates an object whose owners might be deleted. Mirrors `attemptToDeleteItem` of kube-controller-manager.

In: the current object, the state of each owner, and the dependents. Out: a verdict.

| owners | verdict |
|---|---|
| one solid, the others solid too | keep |
| one solid, others absent or waiting | drop the references to the others |
| none solid, one waiting for its dependents, and the object has dependents | delete it in the foreground |
| none solid | delete it, with the propagation that its own finalizers select |
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from kuberuntime.objects.meta import UID
from kuberuntime.plan import Propagation
from localkube.controllers.garbage.graph import FOREGROUND, ORPHAN, GraphNode


class OwnerState(StrEnum):
    """The state of an owner."""

    SOLID = "solid"
    """The owner exists, or its absence is not proven."""
    WAITING = "waiting"
    """The owner is being deleted in the foreground."""
    ABSENT = "absent"
    """The owner does not exist."""


class Keep(Struct, frozen=True):
    """Leave the object unchanged."""


class RemoveOwners(Struct, frozen=True):
    """Remove the references to these owners."""

    uids: frozenset[UID]


class Collect(Struct, frozen=True):
    """Delete the object. With `unblocks_owners`, unblock its owners first, because the owner references form a cycle."""

    propagation: Propagation
    unblocks_owners: bool = False


Verdict: TypeAlias = Keep | RemoveOwners | Collect


def decide(node: GraphNode, states: Mapping[UID, OwnerState], dependents: Sequence[GraphNode]) -> Verdict:
    """Evaluate one object. `states` contains the state of each owner."""
    if not node.owners or node.is_deleting:
        return Keep()
    owner_states = {owner.uid: states[owner.uid] for owner in node.owners}
    unsound = frozenset(uid for uid, state in owner_states.items() if state is not OwnerState.SOLID)
    if len(unsound) < len(owner_states):
        return RemoveOwners(unsound) if unsound else Keep()
    if dependents and OwnerState.WAITING in owner_states.values():
        return Collect("Foreground", unblocks_owners=any(dependent.waits_for_dependents for dependent in dependents))
    return Collect(_own_propagation(node))


def _own_propagation(node: GraphNode) -> Propagation:
    if ORPHAN in node.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in node.finalizers else "Background"
