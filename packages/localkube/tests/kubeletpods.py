"""Builds pods of a kubelet, and waits until they have the expected state."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.plan import Event

NODE = "node-0"


def container(name: str = "main", **fields: Any) -> JSONObject:
    """Build a container that runs `sleep`."""
    return {"name": name, "image": "any:1", "command": ["sleep", "1000"], **fields}


def pod(*containers: JSONObject, name: str = "web-0", metadata: JSONObject | None = None, **spec: Any) -> JSONObject:
    """Build a pod that is assigned to the node. `metadata` extends the default metadata."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}} | (metadata or {}),
        "spec": {"nodeName": NODE, "containers": list(containers) or [container()], **spec},
    }


def status_of(found: JSONObject, name: str = "main") -> JSONObject:
    """Return the status of one container. It is empty before the first status write."""
    status = meta.status(found)
    entries = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    none: JSONObject = {"name": name, "state": {}, "lastState": {}, "restartCount": 0}
    return next((entry for entry in entries if entry["name"] == name), none)


@dataclass
class Events:
    """Stores recorded events."""

    recorded: list[Event] = field(default_factory=list)

    def record(self, event: Event) -> None:
        self.recorded.append(event)

    def reasons(self) -> list[str]:
        return [event.reason for event in self.recorded]


@dataclass
class ObservedPods:
    """A client and the pods of a kubelet. Each condition has a timeout of `limit` seconds."""

    client: Client
    pods: Informer
    limit = 120.0

    async def changed(self, holds: Callable[[Change], bool]) -> JSONObject:
        """Wait for a change that satisfies the condition. Return the object."""
        found: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()

        def look(change: Change) -> None:
            if holds(change) and not found.done():
                found.set_result(change.object)

        self.pods.subscribe(look)
        async with asyncio.timeout(self.limit):
            return await found

    async def until(self, wanted: Callable[[JSONObject], bool], name: str = "web-0") -> JSONObject:
        """Wait until the pod satisfies the condition. Return the pod."""
        return await self.changed(
            lambda change: change.new is not None and meta.name(change.new) == name and wanted(change.new)
        )

    async def ready(self, name: str = "web-0") -> JSONObject:
        """Wait until the pod is ready. Return the pod."""
        return await self.until(lambda found: meta.is_condition_true(found, "Ready"), name)

    async def gone(self, name: str = "web-0") -> JSONObject:
        """Wait until the pod is deleted. Return its last state."""
        return await self.changed(lambda change: change.new is None and meta.name(change.object) == name)
