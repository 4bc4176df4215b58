"""Runs a minimal cluster for thousands of schedules, with production API server, controllers and managers.

Unlike in `cluster.py`, pods run on a model (`kubelet.py`), events end before the API server, and only those of
localkube's controllers run that a LeaderWorkerSet needs: StatefulSets and garbage collection, and for random keys
Deployments. The kinds of kube-scheduler are served if groups ask for them. The cluster is started once for each
process; branches (`forking.py`) continue from there, each with its own randomness.
"""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

from tests.simulation import cluster, product
from tests.simulation.checks.wire import Wire
from tests.simulation.cluster import Settings, SimulatedCluster
from tests.simulation.faults import FaultyTransport, Schedule
from tests.simulation.schedules.kubelet import NODES, ModelKubelet
from tests.simulation.schedules.podgroups import define
from tests.simulation.trace import Trace

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import Executor, NoEvents
from kuberuntime.controller.manager import Manager
from kuberuntime.errors import flatten
from kuberuntime.objects.resources import NODES as NODE_KIND
from leaderworkerset.core.gang.gangs import SCHEDULING, served_name
from leaderworkerset.core.gang.native import KUBERNETES
from leaderworkerset.kinds.managedkinds import managed_kinds
from leaderworkerset.webhooks import review
from localkube.apiserver.inprocess import InProcessTransport
from localkube.controllers.controllermanager import MANY, Informers, build_controller, build_informers
from localkube.controllers.deployment.controller import DeploymentController
from localkube.controllers.garbage.controller import GarbageCollector
from localkube.controllers.replicaset.controller import ReplicaSetController
from localkube.controllers.statefulset.controller import StatefulSetController


class LeanCluster(SimulatedCluster):
    """A running cluster. `wire` observes every request of a manager before and after the API server processes it."""

    def __init__(self, settings: Settings, trace: Trace, directory: Path, group: asyncio.TaskGroup) -> None:
        self._randoms: dict[str, Random] = {}
        super().__init__(settings, trace, directory, group)
        self.kubelet = ModelKubelet(self.server.backend.store, self.clock, self.random("kubelet"))
        self.wire = Wire()
        self.others: FaultyTransport | None = None

    def random(self, actor: str) -> Random:
        """Return an actor's random number generator. `reseed` can change it later."""
        return self._randoms.setdefault(actor, super().random(actor))

    def reseed(self, seed: str) -> None:
        """Set a new random seed for every actor."""
        for actor, random in self._randoms.items():
            random.seed(f"{seed} {actor}")

    async def start(self) -> None:
        """Start all components except managers."""
        await self.server.start()
        await product.install(self.client, self.settings.kinds)
        for served in self.server.backend.registry:
            served.kind.schema_of()  # build the lazy schemas once in this process, instead of in each branch
        for name in NODES:
            await self.client.create(NODE_KIND, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        ready = asyncio.Event()
        self._spawn("controllers", self._run_controllers(ready))
        await ready.wait()

    def _transport(self, actor: str, schedule: Schedule) -> FaultyTransport:
        inner = self.wire.around(InProcessTransport(self.server, actor), actor) if actor != "scenario" else None
        inner = inner or InProcessTransport(self.server, actor)
        return FaultyTransport(inner, actor, schedule, self.random(f"{actor}'s faults"), self.trace)

    async def _run_controllers(self, ready: asyncio.Event) -> None:
        self.others = self._transport("controllers", self.settings.others)
        client = Client(self.others)
        informers = build_informers(client)
        collector = GarbageCollector(client, informers.definitions, self.clock)
        sets = build_controller("statefulset", _statefulsets(client, informers, self.clock),
                                Executor(client, NoEvents(), self.clock), MANY)  # fmt: skip
        used = [informers.pods, informers.statefulsets, informers.revisions, informers.claims, informers.definitions]
        manager = Manager(informers=used, runnables=(sets, collector))
        async with asyncio.TaskGroup() as group:
            group.create_task(manager.run(), name="controllers")
            await manager.wait_synced()
            await collector.synced.wait()
            ready.set()

    async def start_deployments(self) -> None:
        """Start the controllers of Deployments and ReplicaSets. Only leaders with random keys need them."""
        assert self.others is not None
        client = Client(self.others)
        informers = build_informers(client)
        executor = Executor(client, NoEvents(), self.clock)
        sets = ReplicaSetController(
            replicasets=informers.replicasets, pods=informers.pods, client=client, clock=self.clock
        )
        deployments = DeploymentController(deployments=informers.deployments, replicasets=informers.replicasets, pods=informers.pods,
                                  client=client, clock=self.clock)  # fmt: skip
        manager = Manager(
            informers=[informers.pods, informers.replicasets, informers.deployments],
            runnables=(
                build_controller("replicaset", sets, executor, MANY),
                build_controller("deployment", deployments, executor, MANY),
            ),
        )
        self._spawn("deployments", manager.run())
        await manager.wait_synced()

    async def start_gangs(self) -> None:
        """Serve the kinds of kube-scheduler, and configure managers to use them for `spec.scheduling`."""
        for kind in SCHEDULING:
            await self.define(define(kind))
        self.follow_scheduling(is_enabled=True)

    def follow_scheduling(self, *, is_enabled: bool) -> None:
        """Set the feature gate of webhooks and of managers that start after this call."""

        def served() -> Collection[str]:
            return () if self.wire.unserved else [served_name(kind) for kind in SCHEDULING]

        kinds = managed_kinds(KUBERNETES, served, workload_aware=is_enabled)
        self.settings = replace(self.settings, kinds=kinds)
        decisions = kinds.decisions
        self.webhooks.serve(decisions, lambda path, body: review.respond_to_review(body, decisions[path]))

    def errors(self) -> list[BaseException]:
        """Return the errors that stopped an actor, without their exception groups."""
        return [leaf for task in self._tasks.values() if task.done() and not task.cancelled()
                and (error := task.exception()) is not None
                for leaf in (flatten(error) if isinstance(error, Exception) else [error])]  # fmt: skip


def _statefulsets(client: Client, informers: Informers, clock: Clock) -> StatefulSetController:
    return StatefulSetController(
        statefulsets=informers.statefulsets,
        pods=informers.pods,
        revisions=informers.revisions,
        claims=informers.claims,
        client=client,
        clock=clock,
    )


running = partial(cluster.running, kind=LeanCluster)
"""Runs a cluster without managers for the duration of the `with` block."""
