"""Runs the garbage collector, which watches the metadata of all kinds and executes the decisions.

Kinds come from discovery, which is repeated whenever a CustomResourceDefinition changes. An owner that is missing in
the graph does not suffice for a deletion. If the owner's deletion was not observed, the owner is read from the API
server. The object itself is also read before its deletion.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import Executor, NoEvents
from kuberuntime.controller.workqueue import WorkQueue, run_workers
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey, OwnerReference
from kuberuntime.objects.resources import Resource
from kuberuntime.plan import Actions, Concurrently, Delete, Patch, Plan, guarded_patch
from localkube.controllers.garbage.deletableresources import discover, metadata_client
from localkube.controllers.garbage.deletiondecision import Collect, Keep, OwnerState, RemoveOwners, Verdict, decide
from localkube.controllers.garbage.graph import FOREGROUND, ORPHAN, Graph, GraphNode, Owner, read_node, read_owners

IGNORED: Final = {"events", "events.events.k8s.io"}
"""The kinds that are never collected, as in kube-controller-manager. Events do not own objects."""

WORKERS: Final = 16

RETRY: Final = 1.0
"""The time in seconds until discovery is retried after a failure."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GarbageCollector:
    """Deletes objects whose owners were deleted, and completes foreground and orphaning deletions."""

    def __init__(self, client: Client, definitions: Informer, clock: Clock) -> None:
        self._client = metadata_client(client)
        self._executor = Executor(self._client, NoEvents(), clock)
        self._definitions = definitions
        self._graph = Graph()
        self._queue = WorkQueue[UID]()
        self._watched: dict[Resource, asyncio.Task[None]] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._kinds_changed = asyncio.Event()
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Collect garbage until cancelled."""
        self._definitions.subscribe(lambda _: self._kinds_changed.set())
        await self._definitions.wait_synced()
        async with asyncio.TaskGroup() as group:
            for informer in await self._follow_kinds(group):
                await informer.wait_synced()
            group.create_task(run_workers(self._queue, self._process, name="garbage-collector", workers=WORKERS))
            self.synced.set()
            while True:
                await self._kinds_changed.wait()
                try:
                    await self._follow_kinds(group)
                except KubeError as error:
                    log.warning("failed to discover the kinds", error=str(error), retry_in=RETRY)
                    await asyncio.sleep(RETRY)
                    self._kinds_changed.set()

    async def _follow_kinds(self, group: asyncio.TaskGroup) -> list[Informer]:
        """Watch exactly the served kinds. Return the new informers."""
        self._kinds_changed.clear()
        served = [resource for resource in await discover(self._client) if resource.group_resource not in IGNORED]
        self._kinds = {(resource.group, resource.kind): resource for resource in served}
        for resource in [resource for resource in self._watched if resource not in served]:
            self._watched.pop(resource).cancel()
            self._graph.forget(resource)
        fresh = [Informer(self._client, resource) for resource in served if resource not in self._watched]
        for informer in fresh:
            informer.subscribe(partial(self._handle_change, informer.resource))
            self._watched[informer.resource] = group.create_task(informer.run())
        return fresh

    def _handle_change(self, resource: Resource, change: Change) -> None:
        if change.new is None:
            concerned = self._graph.remove(meta.uid(change.object))
        else:
            concerned = self._graph.put(read_node(resource, change.new))
        for uid in concerned:
            self._queue.add(uid)

    async def _process(self, uid: UID) -> None:
        await self._executor.execute(Plan(await self._plan(uid)))

    async def _plan(self, uid: UID) -> Actions:
        node = self._graph.nodes.get(uid)
        if node is None:
            return ()
        if node.orphans_dependents:
            return await self._orphan_dependents(node)
        if node.waits_for_dependents and not self._graph.blocking_dependents(uid):
            return await self._remove_finalizer(node, FOREGROUND)
        if isinstance(await self._decide(node), Keep):
            return ()
        return await self._plan_object(node)

    async def _plan_object(self, node: GraphNode) -> Actions:
        """Evaluate the current state of the object, and return the actions."""
        live = await self._read(node)
        if live is None:
            return ()
        match await self._decide(read_node(node.resource, live)):
            case RemoveOwners(uids):
                return (set_owners(node.resource, live, without_owners(live, uids)),)
            case Collect(propagation, unblock):
                delete = Delete(resource=node.resource, key=node.key, propagation=propagation, uid=node.uid)
                return (set_owners(node.resource, live, unblock_owners(live)), delete) if unblock else (delete,)
        return ()

    async def _decide(self, node: GraphNode) -> Verdict:
        states = {owner.uid: await self._state(node, owner) for owner in node.owners if not node.is_deleting}
        return decide(node, states, self._graph.dependents(node.uid))

    async def _state(self, node: GraphNode, owner: Owner) -> OwnerState:
        owner_node = self._graph.nodes.get(owner.uid)
        if owner_node is not None and owner_node.is_owner(owner):
            return OwnerState.WAITING if owner_node.waits_for_dependents else OwnerState.SOLID
        if self._graph.is_known_deleted(owner.uid):
            return OwnerState.ABSENT
        return await self._read_state(node, owner)

    async def _read_state(self, node: GraphNode, owner: Owner) -> OwnerState:
        """Read an owner that is missing in the graph from the API server."""
        resource = self._kinds.get((owner.group, owner.kind))
        if resource is None or (resource.namespaced and not node.key.namespace):
            log.debug("owner of an unknown kind", object=str(node.key), owner=owner.name, kind=owner.kind)
            return OwnerState.SOLID
        key = ObjectKey(node.key.namespace if resource.namespaced else "", owner.name)
        live = await self._client.find(resource, key)
        if live is None:
            self._graph.note_absent(owner.uid)
            return OwnerState.ABSENT
        owner_node = read_node(resource, live)
        if owner_node.uid != owner.uid:
            return OwnerState.ABSENT
        return OwnerState.WAITING if owner_node.waits_for_dependents else OwnerState.SOLID

    async def _orphan_dependents(self, node: GraphNode) -> Actions:
        """Release all dependents concurrently, to minimize the time of a partial release. Then release the owner."""
        patches = await asyncio.gather(
            *(self._orphan_patch(dependent, node.uid) for dependent in self._graph.dependents(node.uid))
        )
        releases = tuple((patch,) for patch in patches if patch is not None)
        return (Concurrently(sequences=releases, slow_start=False), *await self._remove_finalizer(node, ORPHAN))

    async def _orphan_patch(self, dependent: GraphNode, owner: UID) -> Patch | None:
        live = await self._read(dependent)
        if live is None or all(read_owner.uid != owner for read_owner in read_owners(live)):
            return None
        return set_owners(dependent.resource, live, without_owners(live, {owner}))

    async def _remove_finalizer(self, node: GraphNode, finalizer: str) -> Actions:
        live = await self._read(node)
        if live is None:
            return ()
        kept = [name for name in meta.metadata(live).get("finalizers") or [] if name != finalizer]
        return (guarded_patch(node.resource, live, {"metadata": {"finalizers": kept}}, if_present=True),)

    async def _read(self, node: GraphNode) -> JSONObject | None:
        """Return the current object, or None if it does not exist or has a different UID."""
        live = await self._client.find(node.resource, node.key)
        return live if live is not None and meta.uid(live) == node.uid else None


def set_owners(resource: Resource, live: JSONObject, owners: Sequence[Mapping[str, Any]]) -> Patch:
    """Return the patch that sets these owner references on an object, if it still exists."""
    return guarded_patch(resource, live, {"metadata": {"ownerReferences": owners}}, if_present=True)


def without_owners(obj: JSONObject, uids: Collection[str]) -> list[OwnerReference]:
    """Return the owner references of an object, except references to the given UIDs."""
    return [reference for reference in meta.owners(obj) if reference["uid"] not in uids]


def unblock_owners(obj: JSONObject) -> list[OwnerReference]:
    """Return the owner references of an object, with `blockOwnerDeletion` disabled."""
    return [reference | {"blockOwnerDeletion": False} for reference in meta.owners(obj)]
