"""An embedded API server with all its controllers in this process, and a model of a kubelet."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Transport
from kuberuntime.clock import SystemClock
from kuberuntime.errors import ConflictError, NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from localkube.apiserver.builtin import kinds
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.server import ApiServer, ServerOptions
from localkube.apiserver.storage.store import MEMORY, Store
from localkube.controllers.composition import ControllerSettings, run_controllers
from localkube.controllers.nodes.nodes import NodeSettings

LIMIT = 60.0
"""Seconds in which anything must come true."""

NAMESPACE = "default"


@dataclass
class World:
    """A running cluster as a test sees it."""

    client: Client
    group: asyncio.TaskGroup
    watched: dict[Resource, Informer] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Run something until the test ends."""
        self.tasks.append(self.group.create_task(work))

    def stop(self) -> None:
        """End what was started."""
        for task in self.tasks:
            task.cancel()

    def start_kubelet(self, *held: str) -> "Kubelet":
        """Start a kubelet that does not make the held pods ready."""
        kubelet = Kubelet(self.client)
        kubelet.held.update(held)
        self.start(kubelet.run())
        return kubelet

    async def watch(self, resource: Resource) -> Informer:
        """Watch a kind, once."""
        if resource not in self.watched:
            informer = self.watched[resource] = Informer(self.client, resource)
            informer.subscribe(lambda _: self.changed.set())
            self.start(informer.run())
            await informer.wait_synced()
        return self.watched[resource]

    async def until(self, resource: Resource, holds: Callable[[Sequence[JSONObject]], bool]) -> Sequence[JSONObject]:
        """Wait until the objects of a kind, sorted by name, are as wanted; return them."""
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
        """Wait until exactly these objects are there and none of them is being deleted."""
        return await self.until(
            resource,
            lambda found: [meta.name(one) for one in found] == sorted(names) and not any(map(meta.is_deleting, found)),
        )

    async def get(self, resource: Resource, name: str) -> JSONObject:
        """Read one object of the test's namespace."""
        return await self.client.get(resource, ObjectKey(NAMESPACE if resource.namespaced else "", name))

    async def patch(self, resource: Resource, name: str, change: JSONObject, *, subresource: str = "") -> JSONObject:
        """Change one object of the test's namespace."""
        key = ObjectKey(NAMESPACE if resource.namespaced else "", name)
        return await self.client.patch(resource, key, change, kind="merge", subresource=subresource)


class Kubelet:
    """Makes bound pods ready and ends those that are being deleted; pods in `held` it does not make ready."""

    def __init__(self, client: Client) -> None:
        self.held: set[str] = set()
        self._client = client
        self._pods: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._informer = Informer(client, PODS)

    async def run(self) -> None:
        """Serve until cancelled."""
        self._informer.subscribe(self._changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            while True:
                await self._attend(await self._pods.get())

    def release(self, name: str) -> None:
        """Make a held pod ready."""
        self.held.discard(name)
        self._pods.put_nowait(ObjectKey(NAMESPACE, name))

    def _changed(self, change: Change) -> None:
        if change.new is not None:
            self._pods.put_nowait(meta.key(change.new))

    async def _attend(self, key: ObjectKey) -> None:
        pod = self._informer.store.get(key)
        if pod is None or not meta.spec(pod).get("nodeName"):
            return
        try:
            if meta.is_deleting(pod):
                await self._client.delete(PODS, key, uid=meta.uid(pod), grace_period=0)
            elif key.name not in self.held and meta.status(pod).get("phase") == "Pending":
                await self._report(pod)
        except (NotFoundError, ConflictError):
            return

    async def _report(self, pod: JSONObject) -> None:
        others = [one for one in meta.status(pod).get("conditions") or [] if one["type"] != "Ready"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [*others, ready]}
        patch = {"metadata": {"uid": meta.uid(pod)}, "status": status}
        await self._client.patch(PODS, meta.key(pod), patch, kind="merge", subresource="status")


@asynccontextmanager
async def cluster(
    volumes: Path,
    nodes: NodeSettings | None = None,
    through: Callable[[Transport], Transport] = lambda one: one,
    *,
    max_pods: int | None = None,
) -> AsyncIterator[World]:
    """Start an API server with its controllers, and stop all of it; the controllers' requests go `through` another."""
    clock = SystemClock()
    server = ApiServer(Store(MEMORY), kinds(), clock, ServerOptions(max_pods=max_pods))
    await server.start()
    settings = ControllerSettings(volumes=volumes, nodes=nodes or NodeSettings())
    controllers = Client(through(InProcessTransport(server, "system:kube-controller-manager")))
    ready = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        world = World(Client(InProcessTransport(server, "tester")), group)
        world.start(run_controllers(controllers, settings, clock=clock, ready=ready))
        async with asyncio.timeout(LIMIT):
            await ready.wait()
        yield world
        world.stop()
    await server.close()
