"""Runs an embedded API server with all its controllers in this process, in real time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testkit.apiserver import same_transport, serve_api, start_controllers
from testkit.instantkubelet import InstantKubelet

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Transport
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import Resource
from localkube.apiserver.inprocess import InProcessTransport
from localkube.controllers.controllermanager import ControllerSettings
from localkube.controllers.nodes.nodes import NodeSettings

LIMIT = 60.0
"""The timeout of each condition, in seconds."""

NAMESPACE = "default"


@dataclass
class ControlledServer:
    """A running cluster, from the perspective of a test."""

    client: Client
    group: asyncio.TaskGroup
    watched: dict[Resource, Informer] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run a coroutine in the background until the test finishes."""
        self.tasks.append(self.group.create_task(work))

    def stop(self) -> None:
        """Stop all started servers and tasks."""
        for task in self.tasks:
            task.cancel()

    def start_kubelet(self, *held: str) -> InstantKubelet:
        """Start a kubelet that makes all pods ready except the excluded pods."""
        kubelet = InstantKubelet(self.client)
        kubelet.held.update(held)
        self.start(kubelet.run())
        return kubelet

    async def watch(self, resource: Resource) -> Informer:
        """Watch a kind. Repeated calls have no effect."""
        if resource not in self.watched:
            informer = self.watched[resource] = Informer(self.client, resource)
            informer.subscribe(lambda _: self.changed.set())
            self.start(informer.run())
            await informer.wait_synced()
        return self.watched[resource]

    async def until(self, resource: Resource, holds: Callable[[Sequence[JSONObject]], bool]) -> Sequence[JSONObject]:
        """Wait until the objects of a kind satisfy the condition. Return them sorted by name."""
        informer = await self.watch(resource)
        found: Sequence[JSONObject] = []
        try:
            async with asyncio.timeout(LIMIT):
                while True:
                    self.changed.clear()
                    found = sorted(informer.store.list(), key=meta.name)
                    if holds(found):
                        return found
                    await self.changed.wait()
        except TimeoutError:
            raise AssertionError(f"never came true; last: {[(meta.name(o), o.get('status')) for o in found]}") from None

    async def until_named(self, resource: Resource, *names: str) -> Sequence[JSONObject]:
        """Wait until exactly these objects exist, and none of them is being deleted."""
        return await self.until(
            resource,
            lambda found: [meta.name(one) for one in found] == sorted(names) and not any(map(meta.is_deleting, found)),
        )

    async def get(self, resource: Resource, name: str) -> JSONObject:
        """Read one object in the namespace of the test."""
        return await self.client.get(resource, ObjectKey(NAMESPACE if resource.namespaced else "", name))

    async def patch(self, resource: Resource, name: str, change: JSONObject, *, subresource: str = "") -> JSONObject:
        """Update one object in the namespace of the test."""
        key = ObjectKey(NAMESPACE if resource.namespaced else "", name)
        return await self.client.patch(resource, key, change, kind="merge", subresource=subresource)


@asynccontextmanager
async def cluster(
    volumes: Path,
    nodes: NodeSettings | None = None,
    through: Callable[[Transport], Transport] = same_transport,
    *,
    max_pods: int | None = None,
) -> AsyncIterator[ControlledServer]:
    """Run an API server with its controllers, which send their requests `through` a different transport."""
    clock = SystemClock()
    settings = ControllerSettings(volumes=volumes, nodes=nodes or NodeSettings())
    async with (
        serve_api(clock, max_pods=max_pods) as server,
        start_controllers(server, settings, clock, through),
        asyncio.TaskGroup() as group,
    ):
        world = ControlledServer(Client(InProcessTransport(server, "tester")), group)
        yield world
        world.stop()
