"""Provides one namespace of one cluster, with the steps of a scenario and its final objects."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from testkit.clusters.cluster import ClusterBackend
from tests.conformance.transcript import Entry, normalized

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSON, JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    STATEFULSETS,
    Resource,
)

LIMIT: Final = 20.0
"""The timeout of each condition, in seconds."""

FOLLOWED: Final = (
    HORIZONTAL_POD_AUTOSCALERS,
    DEPLOYMENTS,
    STATEFULSETS,
    REPLICA_SETS,
    PODS,
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    CONFIG_MAPS,
)
UNTOLD: Final = {"managedFields", "resourceVersion", "creationTimestamp", "deletionTimestamp"}
OF_THE_CLUSTER: Final = {"kube-root-ca.crt"}

Objects: TypeAlias = Mapping[str, JSONObject]
Expectation: TypeAlias = Callable[["Stage"], bool]


@dataclass
class Stage:
    """A namespace in which a scenario runs.

    `told` contains its recorded states, and `order` the pods that were created and deleted since the last state.

    `told` contains its recorded states, and `order` the pods that were created and deleted since the last state.

    `told` contains its recorded states, and `order` the pods that were created and deleted since the last state.

    `seen` are the names of all objects that ever existed; `read` has objects that were read again.
    """

    cluster: ClusterBackend
    client: Client
    namespace: str
    informers: Mapping[Resource, Informer]
    told: list[JSON] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    read: Mapping[Resource, Sequence[JSONObject]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def objects(self, resource: Resource) -> Objects:
        """Return the objects of a kind, by name."""
        current = self.read[resource] if self.read else self.informers[resource].store.list()
        found = {meta.name(obj): obj for obj in current}
        return {name: found[name] for name in sorted(found) if name not in OF_THE_CLUSTER}

    async def create(self, resource: Resource, obj: JSONObject) -> JSONObject:
        """Create an object."""
        metadata = obj["metadata"] | {"namespace": self.namespace}
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        return await self.client.create(resource, identity | obj | {"metadata": metadata})

    async def patch(self, resource: Resource, name: str, change: Any, *, subresource: str = "") -> JSONObject:
        """Update an object with a merge patch."""
        return await self.client.patch(resource, self.key(name), change, kind="merge", subresource=subresource)

    async def delete(self, resource: Resource, name: str, propagation: Any = None) -> None:
        """Delete an object."""
        await self.client.delete(resource, self.key(name), propagation=propagation)

    async def provide_volumes(self, storage_class: str, count: int) -> None:
        """Create `count` persistent volumes for claims with this storage class."""
        await self.cluster.provide_volumes(self.client, f"{self.namespace}-{storage_class}", storage_class, count)

    def key(self, name: str) -> ObjectKey:
        """Return the key of an object in the namespace."""
        return ObjectKey(self.namespace, name)

    async def until(self, what: str, expectation: Expectation) -> None:
        """Wait until the condition is true. `what` describes the condition in error messages."""
        try:
            async with asyncio.timeout(LIMIT):
                while not expectation(self):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            found = {resource.kind: [*self.objects(resource)] for resource in FOLLOWED}
            raise AssertionError(f"{self.namespace}: {what} did not come true: {found}") from None

    async def tell(self, what: str, expectation: Expectation, *, ordered: bool = False) -> None:
        """Wait until the condition is true, and record the objects.

        With `ordered`, also record the order of the pods.

        With `ordered`, also record the order of the pods.

        With `ordered`, also record the order of the pods.
        """
        while True:
            await self.until(what, expectation)
            again = replace(self, read={resource: await self._read(resource) for resource in FOLLOWED})
            if expectation(again):  # not every watch has reached the version of the watch that was awaited
                break
        snapshot: dict[str, JSON] = {
            resource.kind: [shown(resource, obj) for obj in again.objects(resource).values()] for resource in FOLLOWED
        }
        if ordered:
            snapshot["order"] = list(self.order)
        self.order.clear()
        self.told.append(snapshot)

    def note(self, change: Change) -> None:
        """Record all changes to objects."""
        self._changed.set()
        self.seen.add(meta.name(change.object))
        if change.object["kind"] == PODS.kind and (change.old is None or change.new is None):
            word = "added" if change.old is None else "deleted"
            self.order.append(f"{word} {meta.name(change.object)}")

    async def _read(self, resource: Resource) -> Sequence[JSONObject]:
        return (await self.client.list(resource, namespace=self.namespace)).items


def shown(resource: Resource, obj: JSONObject) -> JSONObject:
    """Return the fields of an object that the compared controllers wrote."""
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in UNTOLD}
    result: JSONObject = {**obj, "metadata": metadata}
    if resource is PODS:
        spec = {name: value for name, value in meta.spec(obj).items() if name not in {"nodeName", "volumes"}}
        spec["volumes"] = [
            one for one in meta.spec(obj).get("volumes") or () if not one["name"].startswith("kube-api-access")
        ]
        spec["containers"] = [_without_token(one) for one in spec["containers"]]
        status = {"phase": meta.status(obj).get("phase"), "ready": meta.is_condition_true(obj, "Ready")}
        result |= {"spec": spec, "status": status}
    elif resource is PERSISTENT_VOLUME_CLAIMS:
        spec = {name: value for name, value in meta.spec(obj).items() if name not in {"volumeName", "storageClassName"}}
        kept = {name: value for name, value in metadata.items() if name not in {"annotations", "finalizers"}}
        result |= {"metadata": kept, "spec": spec, "status": {}}
    return result


def _without_token(container: JSONObject) -> JSONObject:
    mounts = [one for one in container.get("volumeMounts") or () if not one["name"].startswith("kube-api-access")]
    return {**container, "volumeMounts": mounts}


Scenario: TypeAlias = Callable[[Stage], Awaitable[None]]


async def play(cluster: ClusterBackend, scenario: Scenario) -> JSON:
    """Run a scenario in a separate namespace. Return the recorded states."""
    client = Client(cluster.transport("conformance"))
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "conformance-"}}
    namespace = meta.name(await client.create(NAMESPACES, made))
    await cluster.await_namespace(client, namespace)
    informers = {resource: Informer(client, Selection(resource, namespace)) for resource in FOLLOWED}
    stage = Stage(cluster, client, namespace, informers)
    async with asyncio.TaskGroup() as tasks:
        running = []
        for informer in informers.values():
            informer.subscribe(stage.note)
            running.append(tasks.create_task(informer.run()))
        for informer in informers.values():
            await informer.wait_synced()
        try:
            await scenario(stage)
        finally:
            for task in running:
                task.cancel()
            await client.delete(NAMESPACES, ObjectKey("", namespace))
    await client.close()
    told = [Entry("", 0, "", one) for one in stage.told]
    return [_anonymous(entry.body, namespace) for entry in normalized(told)]


def _anonymous(value: JSON, namespace: str) -> JSON:
    """Return a value in which a placeholder replaces the namespace name."""
    if isinstance(value, dict):
        return {name: _anonymous(child, namespace) for name, child in value.items()}
    if isinstance(value, list):
        return [_anonymous(child, namespace) for child in value]
    return value.replace(namespace, "<namespace>") if isinstance(value, str) else value
