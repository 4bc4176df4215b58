"""Runs a kubelet on a simulated machine with an in-memory API server, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from testkit.apiserver import serving
from testkit.virtualtime import VirtualClock

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from kuberuntime.plan import Event
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.storage.store import Store
from localkube.kubelet.kubelet import Kubelet
from localkube.kubelet.processes.kubeletsettings import KubeletSettings
from localkube.kubelet.processes.runner import Network, SandboxSpec
from localkube.kubelet.processes.simulatedrunner import Script, SimulatedRunner, run_forever

NODE = "node-0"


def pod(name: str = "web-0", *containers: JSONObject, **spec: object) -> JSONObject:
    """Build a pod that is assigned to the node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": NODE, "containers": list(containers) or [container()], **spec},
    }


def container(name: str = "main", **fields: object) -> JSONObject:
    """Build a container that runs `sleep`."""
    return {"name": name, "image": "any", "command": ["sleep", "1000"], **fields}


LONGEST = 6 * 3600.0
"""The timeout of conditions, in seconds."""


class LosingRunner(SimulatedRunner):
    """A runner on a machine on which operations can fail."""

    def __init__(self, script: Script, *, network: Network) -> None:
        super().__init__(script, network=network)
        self._on_lost: dict[str, Callable[[], None]] = {}

    async def create_sandbox(self, spec: SandboxSpec, on_lost: Callable[[], None]) -> str:
        self._on_lost[spec.id] = on_lost
        return await super().create_sandbox(spec, on_lost)

    async def lose_everything(self) -> None:
        """Stop all pods and processes."""
        for sandbox in self.sandboxes:
            asyncio.get_running_loop().call_soon(self._on_lost[sandbox])
        await self.stop()


@dataclass
class Events:
    """Stores recorded events."""

    recorded: list[Event] = field(default_factory=list)

    def record(self, event: Event) -> None:
        self.recorded.append(event)

    def reasons(self) -> list[str]:
        return [event.reason for event in self.recorded]


class CountingTransport(InProcessTransport):
    """Counts writes."""

    writes = 0

    async def request(self, request: Request) -> Response:
        self.writes += request.method != "GET"
        return await super().request(request)


@dataclass
class ModeledKubelet:
    """An API server and a kubelet for tests."""

    client: Client
    transport: CountingTransport
    runner: LosingRunner
    kubelet: Kubelet
    events: Events
    pods: Informer
    directory: Path
    caught_up: asyncio.Event

    async def create(self, obj: JSONObject, resource: Resource = PODS) -> JSONObject:
        return await self.client.create(resource, obj)

    async def delete(self, name: str = "web-0", grace_period: int | None = None) -> None:
        await self.client.delete(PODS, ObjectKey("default", name), grace_period=grace_period)

    async def until(self, wanted: Callable[[JSONObject], bool], name: str = "web-0") -> JSONObject:
        """Wait until the pod satisfies the condition, for at most `LONGEST` of virtual time. Return the pod."""
        found: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()

        def look(change: Change) -> None:
            if change.new is not None and meta.name(change.new) == name and wanted(change.new) and not found.done():
                found.set_result(change.new)

        self.pods.subscribe(look)
        return await asyncio.wait_for(found, LONGEST)

    async def ready(self, name: str = "web-0") -> JSONObject:
        return await self.until(lambda found: meta.is_condition_true(found, "Ready"), name)

    async def gone(self, name: str = "web-0") -> JSONObject:
        """Wait until the pod is deleted. Return its last state."""
        found: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()

        def look(change: Change) -> None:
            if change.new is None and meta.name(change.object) == name and not found.done():
                found.set_result(change.object)

        self.pods.subscribe(look)
        return await found

    async def get(self, name: str = "web-0") -> JSONObject:
        return await self.client.get(PODS, ObjectKey("default", name))


def status_of(found: JSONObject, name: str = "main") -> JSONObject:
    """Return the status of one container. It is empty before the first status write."""
    status = meta.status(found)
    entries = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    none: JSONObject = {"name": name, "state": {}, "lastState": {}, "restartCount": 0}
    return next((entry for entry in entries if entry["name"] == name), none)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The cluster settings of a test."""

    directory: Path
    script: Script = run_forever
    network: Network = "isolated"
    stub: bool = False
    hold_completed: bool = False
    quote_failures: bool = False
    images: dict[str, Path] = field(default_factory=dict)
    store: Store | None = None
    farewell: float = 0
    devices: tuple[str, ...] = ()


@asynccontextmanager
async def cluster(machine: Machine) -> AsyncIterator[ModeledKubelet]:
    """Run a cluster for the duration of the `with` block."""
    runner, events = LosingRunner(machine.script, network=machine.network), Events()
    settings = KubeletSettings(
        node_names=frozenset({NODE}),
        capabilities=await runner.start(),
        state_directory=machine.directory,
        images=machine.images,
        stub=machine.stub,
        hold_completed=machine.hold_completed,
        quote_failures=machine.quote_failures,
        host_environment={"PATH": "/usr/bin:/bin"},
        devices={NODE: machine.devices} if machine.devices else {},
        grace_at_end=timedelta(seconds=machine.farewell),
    )
    async with serving(VirtualClock(), machine.store, random=Random(1)) as server, asyncio.TaskGroup() as tasks:
        transport = CountingTransport(server, "system:node")
        client = Client(transport)
        kubelet = Kubelet(client, runner, settings, VirtualClock(), events)
        pods = Informer(client, PODS)
        running = [tasks.create_task(pods.run()), tasks.create_task(kubelet.run(caught_up := asyncio.Event()))]
        yield ModeledKubelet(client, transport, runner, kubelet, events, pods, machine.directory, caught_up)
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        await runner.stop()
