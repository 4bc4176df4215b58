"""Runs a kubelet on a simulated machine with an in-memory API server, in virtual time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from testkit.apiserver import serve_api
from testkit.virtualtime import VirtualClock
from tests.kubeletpods import NODE, Events, ObservedPods

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS, Resource
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.storage.store import Store
from localkube.kubelet.kubelet import Kubelet
from localkube.kubelet.processes.kubeletsettings import KubeletSettings
from localkube.kubelet.processes.runner import Network, SandboxSpec
from localkube.kubelet.processes.simulatedrunner import Script, SimulatedRunner, run_forever

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


class CountingTransport(InProcessTransport):
    """Counts writes."""

    writes = 0

    async def request(self, request: Request) -> Response:
        self.writes += request.method != "GET"
        return await super().request(request)


@dataclass
class ModeledKubelet(ObservedPods):
    """An API server and a kubelet for tests."""

    transport: CountingTransport
    runner: LosingRunner
    kubelet: Kubelet
    events: Events
    directory: Path
    caught_up: asyncio.Event
    limit = LONGEST

    async def create(self, obj: JSONObject, resource: Resource = PODS) -> JSONObject:
        return await self.client.create(resource, obj)

    async def delete(self, name: str = "web-0", grace_period: int | None = None) -> None:
        await self.client.delete(PODS, ObjectKey("default", name), grace_period=grace_period)

    async def get(self, name: str = "web-0") -> JSONObject:
        return await self.client.get(PODS, ObjectKey("default", name))


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
    async with serve_api(VirtualClock(), machine.store, random=Random(1)) as server, asyncio.TaskGroup() as tasks:
        transport = CountingTransport(server, "system:node")
        client = Client(transport)
        kubelet = Kubelet(client, runner, settings, VirtualClock(), events)
        pods = Informer(client, PODS)
        running = [tasks.create_task(pods.run()), tasks.create_task(kubelet.run(caught_up := asyncio.Event()))]
        yield ModeledKubelet(client, pods, transport, runner, kubelet, events, machine.directory, caught_up)
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        await runner.stop()
