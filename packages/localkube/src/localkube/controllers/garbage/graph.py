"""Stores the owner references of all objects as a graph, and determines the objects that a change affects.

In: added and deleted objects, in any order. Out: the UIDs to process. An owner that is missing in the graph may still
exist, because its kind is not watched or its watch lags. Only objects whose deletion was observed count as absent.
Mirrors `graph_builder.go`.
"""

from collections.abc import Iterator, KeysView
from typing import Final

from msgspec import Struct, field

from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"

MAX_DELETED: Final = 2_000
"""The maximum number of stored UIDs of deleted owners. Each saves one request per dependent."""


class Owner(Struct, frozen=True):
    """An owner reference: the owner, and whether the reference blocks the owner's foreground deletion."""

    uid: UID
    group: str
    kind: str
    name: str
    blocks_deletion: bool


class GraphNode(Struct, frozen=True):
    """The node of an object in the graph: its identity, owners and finalizers, and whether it is being deleted."""

    resource: Resource
    key: ObjectKey
    uid: UID
    owners: tuple[Owner, ...] = ()
    is_deleting: bool = False
    finalizers: frozenset[str] = frozenset()

    @property
    def waits_for_dependents(self) -> bool:
        """Return whether the object is being deleted in the foreground."""
        return self.is_deleting and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        """Return whether the object is being deleted and its dependents are orphaned."""
        return self.is_deleting and ORPHAN in self.finalizers

    def is_owner(self, owner: Owner) -> bool:
        """Return whether a reference matches this object in all fields."""
        identity = (self.uid, self.resource.group, self.resource.kind, self.key.name)
        return identity == (owner.uid, owner.group, owner.kind, owner.name)


class Graph(Struct):
    """The nodes and edges of the graph. Only the garbage collector's driver modifies them.

    The affected UIDs are in the order in which their objects were observed, so that simulations can be repeated.
    """

    nodes: dict[UID, GraphNode] = field(default_factory=dict)
    _dependents: dict[UID, dict[UID, None]] = field(default_factory=dict)
    _deleted: dict[UID, None] = field(default_factory=dict)

    def put(self, node: GraphNode) -> KeysView[UID]:
        """Store the current state of an object. Return the affected UIDs."""
        old = self.nodes.get(node.uid)
        if old == node:
            return _distinct_uids()
        if old is not None:
            self._unlink(old)
        self.nodes[node.uid] = node
        for owner in node.owners:
            self._dependents.setdefault(owner.uid, {})[node.uid] = None
        return self._affected(old, node)

    def remove(self, uid: UID) -> KeysView[UID]:
        """Remove a deleted object. Return the affected UIDs, which are its dependents and waiting owners."""
        node = self.nodes.pop(uid, None)
        if uid in self._dependents:
            self.note_absent(uid)
        if node is None:
            return _distinct_uids()
        self._unlink(node)
        return _distinct_uids(*self._dependents.get(uid, ()), *self._waiting_owners(node))

    def forget(self, resource: Resource) -> None:
        """Remove the objects of a kind that is no longer served, without recording them as deleted."""
        for node in [node for node in self.nodes.values() if node.resource == resource]:
            del self.nodes[node.uid]
            self._unlink(node)

    def note_absent(self, uid: UID) -> None:
        """Record that an object is absent, because it was deleted or is missing in the API server."""
        self._deleted[uid] = None
        if len(self._deleted) > MAX_DELETED:
            del self._deleted[next(iter(self._deleted))]

    def is_known_deleted(self, uid: UID) -> bool:
        """Return whether the object with this UID is known to be deleted. UIDs are never reused."""
        return uid in self._deleted and uid not in self.nodes

    def dependents(self, uid: UID) -> list[GraphNode]:
        """Return the objects that have an owner reference to this UID."""
        return [self.nodes[dependent] for dependent in self._dependents.get(uid, ())]

    def blocking_dependents(self, uid: UID) -> list[GraphNode]:
        """Return the dependents that block the foreground deletion of their owner."""
        return [
            node
            for node in self.dependents(uid)
            if any(owner.uid == uid and owner.blocks_deletion for owner in node.owners)
        ]

    def _affected(self, old: GraphNode | None, node: GraphNode) -> KeysView[UID]:
        concerned: list[UID] = []
        if node.owners and (old is None or old.owners != node.owners or old.is_deleting != node.is_deleting):
            concerned += (node.uid, *self._waiting_owners(node))
        if old is not None:
            concerned += self._waiting_owners(old)
        if node.waits_for_dependents and not (old and old.waits_for_dependents):
            concerned += (node.uid, *self._dependents.get(node.uid, ()))
        if node.orphans_dependents:
            concerned.append(node.uid)
        return _distinct_uids(*concerned)

    def _waiting_owners(self, node: GraphNode) -> list[UID]:
        owners = (self.nodes.get(owner.uid) for owner in node.owners)
        return [owner.uid for owner in owners if owner is not None and owner.waits_for_dependents]

    def _unlink(self, node: GraphNode) -> None:
        for owner in node.owners:
            edges = self._dependents.get(owner.uid, {})
            edges.pop(node.uid, None)
            if not edges:
                self._dependents.pop(owner.uid, None)


def _distinct_uids(*uids: UID) -> KeysView[UID]:
    """Return the UIDs in order, without duplicates."""
    return dict.fromkeys(uids).keys()


def read_node(resource: Resource, obj: JSONObject) -> GraphNode:
    """Return the node of an object."""
    metadata = meta.metadata(obj)
    return GraphNode(
        resource=resource,
        key=meta.key(obj),
        uid=meta.uid(obj),
        owners=tuple(read_owners(obj)),
        is_deleting=meta.is_deleting(obj),
        finalizers=frozenset(metadata.get("finalizers") or ()),
    )


def read_owners(obj: JSONObject) -> Iterator[Owner]:
    """Read the owner references of an object."""
    for reference in meta.owners(obj):
        group, slash, _ = str(reference.get("apiVersion") or "").partition("/")
        yield Owner(
            uid=UID(reference.get("uid") or ""),
            group=group if slash else "",
            kind=reference.get("kind") or "",
            name=reference.get("name") or "",
            blocks_deletion=bool(reference.get("blockOwnerDeletion")),
        )
