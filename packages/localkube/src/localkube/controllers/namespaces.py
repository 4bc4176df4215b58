"""Implements the namespace controller, which empties terminating namespaces and removes their finalizers.

Mirrors `namespaced_resources_deleter.go`: the kinds come from discovery, so that custom resources are also deleted.
While objects remain (a pod in its grace period, an object with finalizers), the namespace is reconciled periodically,
and its conditions name the objects.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Watch
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import UID, JSONObject, ObjectKey
from kuberuntime.objects.resources import NAMESPACES, Resource
from kuberuntime.plan import Actions, Concurrently, DeleteCollection, Plan, Put, PutStatus
from localkube.controllers.garbage.deletableresources import discover, metadata_client

FINALIZER: Final = "kubernetes"
CONTENT_REMAINING: Final = "NamespaceContentRemaining"
RECOUNT: Final = 0.25
"""The time in seconds until the remaining objects of a namespace are recounted."""


class NamespaceController(Struct, frozen=True, kw_only=True):
    """Empties and finalizes terminating namespaces. `_emptying` contains namespaces with a completed deletion pass."""

    namespaces: Informer
    client: Client
    clock: Clock
    _emptying: dict[ObjectKey, UID] = field(default_factory=dict)

    def watches(self) -> tuple[Watch, ...]:
        """Return the watches, with the namespaces that a change affects."""
        return (Watch(self.namespaces, lambda change: [meta.key(change.object)]),)

    async def plan(self, key: ObjectKey) -> Plan:
        """Delete the objects in a namespace, or finalize it if it is empty."""
        namespace = self.namespaces.store.get(key)
        finalizers = meta.spec(namespace or {}).get("finalizers") or []
        if namespace is None or not meta.is_deleting(namespace) or FINALIZER not in finalizers:
            self._emptying.pop(key, None)
            return Plan()
        remaining = await self._count(key.name)
        if not remaining:
            others = [name for name in finalizers if name != FINALIZER]
            finished = namespace | {"spec": meta.spec(namespace) | {"finalizers": others}}
            return Plan((Put(resource=NAMESPACES, object=finished, subresource="finalize"),))
        deletions = Concurrently(
            sequences=tuple((DeleteCollection(resource=resource, namespace=key.name),) for resource in remaining),
            slow_start=False,
        )
        if self._emptying.get(key) != meta.uid(namespace):  # most objects are deleted immediately, so recount first
            self._emptying[key] = meta.uid(namespace)
            return Plan((deletions,), requeue_after=0.0)
        return Plan((*self._report(namespace, remaining), deletions), requeue_after=RECOUNT)

    async def _count(self, namespace: str) -> Counter[Resource]:
        reader = metadata_client(self.client)
        served = [resource for resource in await discover(self.client) if resource.namespaced]
        lists = await asyncio.gather(*(reader.list(resource, namespace=namespace) for resource in served))
        return +Counter({resource: len(page.items) for resource, page in zip(served, lists, strict=True)})

    def _report(self, namespace: JSONObject, remaining: Counter[Resource]) -> Actions:
        counts = Counter({resource.group_resource: number for resource, number in remaining.items()})
        conditions = with_remaining(namespace, counts, self.clock.now())
        if conditions is None:
            return ()
        version = meta.resource_version(namespace)
        changed = namespace | {"status": meta.status(namespace) | {"conditions": conditions}}
        return (PutStatus(resource=NAMESPACES, object=changed, resource_version=version),)


def with_remaining(namespace: JSONObject, remaining: Counter[str], now: datetime) -> Sequence[JSONObject] | None:
    """Return conditions that list the remaining objects, or None if they are up to date."""
    counts = ", ".join(f"{kind} has {number} resource instances" for kind, number in sorted(remaining.items()))
    message = f"Some resources are remaining: {counts}"
    previous = meta.find_condition(namespace, CONTENT_REMAINING) or {}
    if previous.get("message") == message:
        return None
    condition = {"type": CONTENT_REMAINING, "status": "True", "reason": "SomeResourcesRemain", "message": message}
    return meta.with_condition(namespace, condition, timestamps.render(now))
