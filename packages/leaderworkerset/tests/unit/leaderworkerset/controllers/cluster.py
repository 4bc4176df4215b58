"""Runs an API server, controllers, a manager, and a simulated kubelet in one process and in virtual time.

Pods are never bound to a node, so a deletion takes effect immediately, which is hardest to notice.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache
from itertools import count

import msgspec
from msgspec.structs import replace
from testkit.transports import ForwardingTransport
from testkit.virtualtime import VirtualClock
from tests import builders
from tests.scenario import Scenario
from tests.simulation import product

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.client.transport import Request, Response
from kuberuntime.controller.executor import Executor
from kuberuntime.errors import NotFoundError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PODS,
    STATEFULSETS,
)
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.capabilities.deciding import admit_pod
from leaderworkerset.controllers.instruments import NO_INSTRUMENTS, Instruments
from leaderworkerset.kinds.managedkinds import MANAGED
from localkube.apiserver import builtin
from localkube.apiserver.custom.customresource import kind_from_crd
from localkube.apiserver.inprocess import InProcessTransport
from localkube.apiserver.model.kind import Kind, Operation
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import Store
from localkube.controllers.controllermanager import Driver, build_controller, build_informers
from localkube.controllers.deployment.controller import DeploymentController
from localkube.controllers.garbage.controller import GarbageCollector
from localkube.controllers.replicaset.controller import ReplicaSetController
from localkube.controllers.statefulset.controller import StatefulSetController

NAMESPACE = "default"
RACK = {"rack": "r7"}


class CountingTransport(ForwardingTransport):
    """Counts the writes of a transport."""

    def __init__(self, server: ApiServer, user: str) -> None:
        super().__init__(InProcessTransport(server, user))
        self.writes: Counter[str] = Counter()

    async def request(self, request: Request) -> Response:
        if request.method != "GET" and "/events" not in request.path:
            self.writes[request.method] += 1
        return await self.inner.request(request)


class NodelessCluster(Scenario):
    """The actions and queries of a test. Use `running()`. The kinds in `further` are also served."""

    namespace = NAMESPACE
    quiet = 30.0
    limit = 600.0

    def __init__(self, further: Iterable[Kind] = ()) -> None:
        self.clock = VirtualClock()
        self.server = ApiServer(Store(), [*served_kinds(), *further], self.clock)
        self.client = Client(InProcessTransport(self.server, "tester"))
        self.transport = CountingTransport(self.server, "manager")
        self.instruments: Instruments = NO_INSTRUMENTS
        self.kinds = MANAGED
        self.ready_pods: Callable[[JSONObject], bool] = lambda _: True

    @asynccontextmanager
    async def running(self) -> AsyncIterator["NodelessCluster"]:
        """Run the cluster without the manager's controllers."""
        await self.server.start()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in (self._run_workloads(), self._collect(), self._run_pods())]
            yield self
            for task in tasks:
                task.cancel()
        await self.server.close()

    @asynccontextmanager
    async def managed(self) -> AsyncIterator[None]:
        """Run the manager's controllers."""
        async with product.controllers(Client(self.transport), self.clock, self.instruments, self.kinds):
            yield

    async def settle(self, seconds: float = 30.0) -> None:
        """Advance the virtual time."""
        await asyncio.sleep(seconds)

    async def bring_up(self, lws: JSONObject) -> None:
        """Create a LeaderWorkerSet, and advance the virtual time."""
        await self.create(lws)
        await self.settle()

    async def notes(self) -> list[str]:
        """Return the messages of all events."""
        return [str(event.get("note")) for event in await self.objects(EVENTS)]

    async def revision_keys(self) -> list[str]:
        """Return the keys of all revisions of LeaderWorkerSets."""
        owned = [one for one in await self.objects(CONTROLLER_REVISIONS) if _owner_kind(one) == LEADERWORKERSETS.kind]
        keys = [meta.labels(one).get(labels.TEMPLATE_REVISION_HASH) for one in owned]
        return [key for key in keys if key is not None]

    async def orphan_leaders(self) -> None:
        """Remove the owners of leader StatefulSets and Deployments, and advance the virtual time."""
        for resource in (STATEFULSETS, DEPLOYMENTS):
            keepers = (await self.client.list(resource, namespace=NAMESPACE)).items
            for obj in (obj for obj in keepers if (meta.controller_of(obj) or {}).get("kind") == LEADERWORKERSETS.kind):
                await self.client.patch(resource, meta.key(obj), {"metadata": {"ownerReferences": None}}, kind="merge")
        await self.settle()

    async def live_with_random_keys(self) -> None:
        """Create a LeaderWorkerSet with random keys. Make one group fail twice, and replace all groups."""
        spec = {"groupIdentity": "Hash"}
        await self.bring_up(builders.leaderworkerset_object("random", spec=spec))
        for _ in range(2):
            worker = next(name for name in await self.uids() if name.startswith("random-") and name.endswith("-1"))
            await self.fail(worker)
            await self.settle(60)
        await self.orphan_leaders()
        template = {"spec": {"leaderWorkerTemplate": {"workerTemplate": builders.pod_template("app:2")}}}
        await self.patch(template, "random")
        await self.settle(120)
        assert len([name for name in await self.uids() if name.startswith("random-")]) == 4
        await self.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "random"))
        await self.settle()

    async def exhaust_and_recover(self) -> None:
        """Create a LeaderWorkerSet whose only group has reached its restart limit.

        Let it fail, recover it, and delete all.
        """
        await self.bring_up(builders.leaderworkerset_object("limited", replicas=1, template={"maxGroupRestarts": 0}))
        await self.fail("limited-0-1")
        await self.settle()
        recover = {"metadata": {"annotations": {labels.RECOVER: "true"}}}
        before = await self.uids()
        await self.patch(recover, "limited-0", resource=PODS)
        await self.settle()
        after = await self.uids()
        assert all(before[name] != after[name] for name in ("limited-0", "limited-0-1"))
        await self.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "limited"))
        await self.settle()

    async def end_together(self) -> None:
        """Create a LeaderWorkerSet whose workers terminate with their leader, and scale it down slowly."""
        metadata = {"annotations": {labels.POD_TERMINATION_POLICY: "Parallel"}}
        await self.bring_up(builders.leaderworkerset_object("ending", metadata=metadata))
        lws = ObjectKey(NAMESPACE, "ending")
        held, free = ({"metadata": {"finalizers": finalizers}} for finalizers in (["example.com/hold"], None))
        for leader in ("ending-0", "ending-1"):
            await self.patch(held, leader, resource=PODS)
        await self.client.patch(LEADERWORKERSETS, lws, {"spec": {"replicas": 1}}, kind="merge")
        await self.settle()
        assert {name for name in await self.uids() if name.startswith("ending-")} == {
            "ending-0",
            "ending-0-1",
            "ending-1",
        }
        await self.client.delete(LEADERWORKERSETS, lws)
        await self.settle()
        assert {name for name in await self.uids() if name.startswith("ending-")} == {"ending-0", "ending-1"}
        for leader in ("ending-0", "ending-1"):
            await self.patch(free, leader, resource=PODS)
        await self.settle()

    async def come_back(self) -> None:
        """Create a LeaderWorkerSet with preferred nodes, make its only group fail, and delete all objects."""
        metadata = {"annotations": {labels.STAY_ON_NODES: "Preferred"}}
        own = {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
        pods = builders.pod_template()
        pods["spec"]["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [own]}}
        template = {"workerTemplate": pods}
        await self.bring_up(
            builders.leaderworkerset_object("staying", replicas=1, metadata=metadata, template=template)
        )
        for pod in ("staying-0", "staying-0-1"):
            await self.bind(pod, f"node-of-{pod}")
        await self.settle()
        await self.fail("staying-0-1")
        await self.settle()
        for pod in ("staying-0-1", "staying-0"):  # as the kubelet deletes them
            await self.client.delete(PODS, ObjectKey(NAMESPACE, pod), grace_period=0)
        await self.settle()
        for pod in ("staying-0", "staying-0-1"):
            assert f"node-of-{pod}" in str(meta.spec(await self.get(PODS, pod))["affinity"])
        await self.client.delete(LEADERWORKERSETS, ObjectKey(NAMESPACE, "staying"))
        await self.settle()

    async def bind(self, pod: str, node: str) -> None:
        """Bind a pod to a new node with a `rack` label."""
        await self.client.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": RACK}}
        )
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"name": node}}
        path = PODS.path(NAMESPACE, pod, "binding")
        headers = {"content-type": "application/json"}
        await self.client.send(Request("POST", path, (), headers, msgspec.json.encode(binding)))

    async def fail(self, pod: str) -> None:
        """Report one restart of the first container of a pod."""
        found = await self.get(PODS, pod)
        statuses = [{"name": "main", "restartCount": 1, "ready": True, "image": "i", "imageID": "i"}]
        patch = {"status": meta.status(found) | {"containerStatuses": statuses}}
        await self.client.patch(PODS, meta.key(found), patch, kind="merge", subresource="status")

    async def make_unready(self, name: str) -> None:
        """Report the pod as not ready until it is replaced."""
        status = {"conditions": [{"type": "Ready", "status": "False"}]}
        await self.client.patch(
            PODS, ObjectKey(NAMESPACE, name), {"status": status}, kind="merge", subresource="status"
        )
        await self.settle()

    async def _run_workloads(self) -> None:
        """Run the controllers of StatefulSets, Deployments and ReplicaSets."""
        client, clock, read = self.client, self.clock, build_informers(self.client)
        drivers: dict[str, Driver] = {
            "statefulset": StatefulSetController(
                statefulsets=read.statefulsets,
                pods=read.pods,
                revisions=read.revisions,
                claims=read.claims,
                client=client,
                clock=clock,
            ),
            "replicaset": ReplicaSetController(
                replicasets=read.replicasets, pods=read.pods, client=client, clock=clock
            ),
            "deployment": DeploymentController(
                deployments=read.deployments, replicasets=read.replicasets, pods=read.pods, client=client, clock=clock
            ),
        }
        executor = Executor(client, _Silence(), clock)
        async with asyncio.TaskGroup() as group:
            for informer in (
                read.statefulsets,
                read.replicasets,
                read.deployments,
                read.pods,
                read.revisions,
                read.claims,
            ):
                group.create_task(informer.run())
            for name, driver in drivers.items():
                group.create_task(build_controller(name, driver, executor).run())

    async def _collect(self) -> None:
        definitions = Informer(self.client, CUSTOM_RESOURCE_DEFINITIONS)
        async with asyncio.TaskGroup() as group:
            group.create_task(definitions.run())
            group.create_task(GarbageCollector(self.client, definitions, self.clock).run())

    async def _run_pods(self) -> None:
        """Make each pod run, and become ready if `ready_pods` permits it."""
        informer = Informer(self.client, PODS)
        async with asyncio.TaskGroup() as group:

            def changed(change: Change) -> None:
                if change.new is not None and not meta.status(change.new).get("conditions"):
                    group.create_task(self._start_pod(change.new))

            informer.subscribe(changed)
            await informer.run()

    async def _start_pod(self, pod: JSONObject) -> None:
        await asyncio.sleep(0.5)
        ready = "True" if self.ready_pods(pod) else "False"
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
        try:
            await self.client.patch(PODS, meta.key(pod), {"status": status}, kind="merge", subresource="status")
        except NotFoundError:
            return  # deleted meanwhile


def _owner_kind(obj: JSONObject) -> str:
    return str((meta.controller_of(obj) or {}).get("kind"))


class _Silence:
    """Discards events."""

    def record(self, _event: object) -> None: ...


@lru_cache(maxsize=1)
def served_kinds() -> list[Kind]:
    """Return the served kinds. The webhook function processes pods."""
    served = [_admitting(kind) if kind.resource == PODS else kind for kind in builtin.kinds()]
    return [*served, *map(kind_from_crd, MANAGED.definitions())]


def _admitting(pods: Kind) -> Kind:
    requests = map(str, count())

    def prepare(operation: Operation, new: JSONObject, old: JSONObject | None) -> JSONObject:
        admitted = admit_pod(new, request=next(requests)) if operation == "create" else new
        return pods.prepare(operation, admitted, old)

    return replace(pods, prepare=prepare)
