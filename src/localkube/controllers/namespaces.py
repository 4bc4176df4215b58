"""The end of a namespace: everything in it is deleted, then its finalizer is taken off, which removes it.

Mirrors `namespaced_resources_deleter.go`: the kinds come from discovery, so that custom resources go too. While
something is left (a pod in its grace period, an object with finalizers) the namespace is looked at again; what is left
is said in its conditions.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import Executor, Write
from kuberuntime.controller.loop import Watch
from kuberuntime.objects import meta, timestamps
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import NAMESPACES, Resource
from kuberuntime.plan import PutStatus
from localkube.controllers.framework.session import Session
from localkube.controllers.garbage.discovery import discover
from localkube.controllers.garbage.metadata import metadata_client

FINALIZER: Final = "kubernetes"
CONTENT_REMAINING: Final = "NamespaceContentRemaining"
LOOK_AGAIN: Final = 0.25
"""Seconds between two looks at a namespace that is not empty yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces:
    """Empties and finishes namespaces that are being deleted."""

    namespaces: Informer
    client: Client
    executor: Executor
    clock: Clock

    def watches(self) -> tuple[Watch, ...]:
        """Say which namespaces a change concerns."""
        return (Watch(self.namespaces, lambda change: [meta.key(change.object)]),)

    async def look(self, key: ObjectKey, writes: list[Write]) -> float | None:
        """Bring one namespace nearer to its end."""
        namespace = self.namespaces.store.get(key)
        finalizers = meta.spec(namespace or {}).get("finalizers") or []
        if namespace is None or not meta.is_deleting(namespace) or FINALIZER not in finalizers:
            return None
        remaining = await self._empty(key.name)
        if remaining:
            await self._report(namespace, remaining, writes)
            return LOOK_AGAIN
        kept = [name for name in finalizers if name != FINALIZER]
        finished = namespace | {"spec": meta.spec(namespace) | {"finalizers": kept}}
        await self.client.update(NAMESPACES, finished, subresource="finalize")
        return None

    async def _empty(self, namespace: str) -> Counter[str]:
        """Delete everything in a namespace; return how much of which kind is still there."""
        served = [resource for resource in await discover(self.client) if resource.namespaced]
        async with asyncio.TaskGroup() as group:
            counts = [group.create_task(self._empty_kind(resource, namespace)) for resource in served]
        found = zip(served, counts, strict=True)
        return Counter({resource.group_resource: count.result() for resource, count in found if count.result()})

    async def _empty_kind(self, resource: Resource, namespace: str) -> int:
        reader = metadata_client(self.client)
        if not (await reader.list(resource, namespace=namespace)).items:
            return 0
        await self.client.send(Request("DELETE", resource.path(namespace)))
        return len((await reader.list(resource, namespace=namespace)).items)

    async def _report(self, namespace: JSONObject, remaining: Counter[str], writes: list[Write]) -> None:
        conditions = with_remaining(namespace, remaining, self.clock.now())
        if conditions is None:
            return
        version = meta.resource_version(namespace)
        changed = namespace | {"status": meta.status(namespace) | {"conditions": conditions}}
        put = PutStatus(resource=NAMESPACES, object=changed, resource_version=version)
        await Session(self.client, self.executor, writes).perform(put)


def with_remaining(namespace: JSONObject, remaining: Counter[str], now: datetime) -> Sequence[JSONObject] | None:
    """Return the conditions that name what is left; None where they do so already."""
    listed = ", ".join(f"{kind} has {number} resource instances" for kind, number in sorted(remaining.items()))
    message = f"Some resources are remaining: {listed}"
    known = meta.find_condition(namespace, CONTENT_REMAINING) or {}
    if known.get("message") == message:
        return None
    since = known.get("lastTransitionTime") or timestamps.render(now)
    condition = {
        "type": CONTENT_REMAINING,
        "status": "True",
        "reason": "SomeResourcesRemain",
        "message": message,
        "lastTransitionTime": since,
    }
    others: list[JSONObject] = meta.status(namespace).get("conditions") or []
    return [*(one for one in others if one["type"] != CONTENT_REMAINING), condition]
