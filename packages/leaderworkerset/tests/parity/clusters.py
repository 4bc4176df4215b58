"""Runs the embedded cluster in this process, and real Kubernetes with kwok nodes, for parity tests.

Both have 64 nodes with the labels of the recording, our admission webhooks and the CRD. `manager` runs our controllers
next to them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from testkit.apiserver import serve_api, start_controllers
from testkit.instantkubelet import InstantKubelet
from testkit.transports import ForwardingTransport
from tests.controlplane import build
from tests.controlplane.process import Plane, control_plane

from kuberuntime.access import kubeconfig
from kuberuntime.access.access import Access
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.transport import Request, Response, Transport
from kuberuntime.clock import SystemClock
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, NODES, SERVICE_ACCOUNTS
from leaderworkerset.api import crd
from leaderworkerset.capabilities import names
from leaderworkerset.kinds.managedkinds import MANAGED, managed_kinds
from leaderworkerset.kinds.registry import Registry
from leaderworkerset.manager import lwsmanager
from leaderworkerset.manager.policyremoval import PolicyRemoval
from localkube.apiserver.inprocess import InProcessTransport
from localkube.controllers.controllermanager import ControllerSettings
from localkube.controllers.nodes.nodeoptions import LabelTemplate
from localkube.controllers.nodes.nodes import NodeSettings

NAMESPACE: Final = "default"
NODE_COUNT: Final = 64
ZONE: Final = "topology.kubernetes.io/zone"
START: Final = 60.0
"""The timeout for the start of a cluster in seconds."""

USER_AGENT: Final = "lws/test"
"""The API server derives the field manager `lws` from this user agent (R-MGR-7)."""


class Agent(ForwardingTransport):
    """A named transport that counts its writes, except writes of events."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self.writes: Counter[tuple[str, str]] = Counter()

    async def request(self, request: Request) -> Response:
        if request.method != "GET" and "/events" not in request.path:
            self.writes[request.method, request.path] += 1
        named = replace(request, headers={**request.headers, "user-agent": USER_AGENT})
        return await self.inner.request(named)


@dataclass
class ParityCluster:
    """The cluster of a test, with a client for the test, and controllers that the test starts."""

    client: Client
    agent: Agent
    clock: SystemClock = field(default_factory=SystemClock)
    kinds: Registry = MANAGED

    @asynccontextmanager
    async def manager(self) -> AsyncIterator[None]:
        """Run the controllers for the duration of the `with` block."""
        async with lwsmanager.controllers(Client(self.agent), self.clock, kinds=self.kinds):
            yield


@asynccontextmanager
async def embedded(directory: Path) -> AsyncIterator[ParityCluster]:
    """Start an API server with its controllers, and a kubelet that reports all pods as running."""
    clock = SystemClock()
    labels = (LabelTemplate("rack", "rack-{i}"), LabelTemplate(ZONE, "zone-{i%4}"))
    nodes = NodeSettings(count=NODE_COUNT, labels=labels, capacity={"google.com/tpu": "1000"})
    settings = ControllerSettings(volumes=directory, nodes=nodes)
    async with serve_api(clock) as server, start_controllers(server, settings, clock), asyncio.TaskGroup() as group:
        client = Client(InProcessTransport(server, "tester"))
        kubelet = group.create_task(InstantKubelet(Client(InProcessTransport(server, "system:node"))).run())
        async with lwsmanager.webhooks(client, clock):
            yield ParityCluster(client, Agent(InProcessTransport(server, "manager")))
        kubelet.cancel()


@contextmanager
def plane(directory: Path) -> Iterator[Plane]:
    """Run a Kubernetes control plane. Its nodes and pods are simulated by kwok."""
    with control_plane(build.assets(print), directory, _define_kind) as running:
        _in_a_loop(partial(_make_nodes, running))
        yield running


@asynccontextmanager
async def kubernetes(running: Plane, *, by_policy: bool = False) -> AsyncIterator[ParityCluster]:
    """Use a control plane that may have run other tests, and delete their events.

    With `by_policy`, our manager lets kube-apiserver admit pods by a policy, which stays until the end.
    """
    kinds = managed_kinds(configured={names.POD_ADMISSION: True}) if by_policy else MANAGED
    client = Client(HTTPTransport(_access(running), user_agent="tester"))
    agent = Agent(HTTPTransport(_access(running), user_agent=USER_AGENT))
    try:
        await client.send(Request("DELETE", EVENTS.path(NAMESPACE), (), {"accept": "application/json"}))
        async with lwsmanager.webhooks(client, SystemClock(), kinds=kinds, evaluates_cel=by_policy):
            yield ParityCluster(client, agent, kinds=kinds)
            await PolicyRemoval(client).run()
    finally:
        await agent.close()
        await client.close()


@asynccontextmanager
async def kubernetes_alone(directory: Path) -> AsyncIterator[ParityCluster]:
    """Start a separate control plane, and use it for one test."""
    with plane(directory) as running:
        async with kubernetes(running) as cluster:
            yield cluster


def _define_kind(running: Plane) -> None:
    """Create the LeaderWorkerSet CRD before the garbage collector starts."""

    async def define() -> None:
        client = Client(HTTPTransport(_access(running), user_agent="tester"))
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, crd.leaderworkerset_crd(), manager=lwsmanager.INSTALLER)
        await client.close()

    _in_a_loop(define)


async def _make_nodes(running: Plane) -> None:
    client = Client(HTTPTransport(_access(running), user_agent="tester"))
    async with asyncio.timeout(START):
        for index in range(NODE_COUNT):
            await client.create(NODES, build_node(index))
        await _until_pods_can_be_created(client)
    await client.close()


def _in_a_loop(call: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a coroutine in a separate thread, because the event loop of this thread may be running."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(call())).result()


def _access(plane: Plane) -> Access:
    return kubeconfig.load({}, kubeconfig=str(plane.kubeconfig))


CLUSTERS: Final = {"embedded": embedded, "kubernetes": kubernetes_alone}


def build_node(index: int) -> JSONObject:
    """Build a node for kwok."""
    name = f"node-{index}"
    places = {"rack": f"rack-{index}", ZONE: f"zone-{index % 4}"}
    own = places | {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    amounts = {"cpu": "1000", "memory": "4Ti", "ephemeral-storage": "100Ti", "pods": "1000", "google.com/tpu": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


async def _until_pods_can_be_created(client: Client) -> None:
    """Wait for the default ServiceAccount of pods."""
    while True:
        try:
            account = await client.get(SERVICE_ACCOUNTS, ObjectKey(NAMESPACE, "default"))
        except NotFoundError:
            await asyncio.sleep(0.1)
        else:
            assert meta.uid(account)
            return
