"""Creates all controllers of the small Kubernetes, and runs them over one client.

Informers are shared, so that every kind is watched once; besides, the garbage collector watches the metadata
of all kinds. Events are written under the upstream names of the controllers.
"""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Controller, ControllerOptions, Watch
from kuberuntime.controller.eventrecorder import EventRecorder
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.manager import Manager, Runnable
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.plan import Plan
from localkube.controllers.autoscaling.controller import Autoscalers
from localkube.controllers.deployment.controller import Deployments
from localkube.controllers.disruption.controller import DisruptionBudgets
from localkube.controllers.endpoints import EndpointSlices
from localkube.controllers.garbage.controller import GarbageCollector
from localkube.controllers.informers import Informers, build_informers
from localkube.controllers.namespaces import Namespaces
from localkube.controllers.nodes.nodes import NodeSettings, ensure_nodes
from localkube.controllers.nodes.nodetaints import NodeTaints
from localkube.controllers.nodes.podgc import PodGarbageCollector
from localkube.controllers.nodes.tainteviction import TaintEviction
from localkube.controllers.replicaset.replicasets import ReplicaSets
from localkube.controllers.scheduler import controller as scheduling
from localkube.controllers.statefulset.controller import StatefulSets
from localkube.controllers.volumes.volumebinder import VolumeBinder, ensure_default_class

USUAL: Final = ControllerOptions(quiet=True)

MANY: Final = ControllerOptions(workers=8, quiet=True)
"""The options for StatefulSets and ReplicaSets; each of them also creates its pods concurrently."""

ONE: Final = ControllerOptions(workers=1, quiet=True)
"""The options for controllers whose keys may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """The settings of the controllers: the simulated nodes, and the directory for the volumes of claims."""

    volumes: Path
    nodes: NodeSettings = field(default_factory=NodeSettings)


@dataclass(frozen=True, slots=True)
class Wiring:
    """The collaborators from which controllers are built."""

    client: Client
    informers: Informers
    clock: Clock

    def recorder(self, reporter: str) -> EventRecorder:
        """Build the recorder of one controller's events."""
        return EventRecorder(self.client, reporter, socket.gethostname(), self.clock)

    def executor(self, recorder: EventRecorder) -> Executor:
        """Build the executor of one controller."""
        return Executor(self.client, recorder, self.clock)


class Driver(Protocol):
    """The driver of a controller: its watches, and the plan of a key."""

    def watches(self) -> Sequence[Watch]:
        """Return the watches, with the keys that a change affects."""
        ...

    async def plan(self, key: ObjectKey) -> Plan:
        """Observe the objects of one key and return its plan."""
        ...


def build_controller(name: str, driver: Driver, executor: Executor, options: ControllerOptions = USUAL) -> Controller:
    """Build the controller around a driver."""
    return Controller(name, watches=driver.watches(), plan=driver.plan, executor=executor, options=options)


async def run_controllers(
    client: Client, settings: ControllerSettings, *, clock: Clock, ready: asyncio.Event | None = None
) -> None:
    """Run all controllers until cancelled; `ready` is set once the nodes exist and all informers have synced."""
    await ensure_nodes(client, settings.nodes, clock)
    await ensure_default_class(client)
    wiring = Wiring(client, build_informers(client), clock)
    collector = GarbageCollector(client, wiring.informers.definitions, clock)
    runnables = (
        *_statefulsets(wiring),
        *_replicasets(wiring),
        *_deployments(wiring),
        *_autoscalers(wiring),
        *_scheduler(wiring),
        *_volume_binder(wiring, settings.volumes),
        *_nodes(wiring),
        *_housekeeping(wiring),
        collector,
    )
    manager = Manager(informers=wiring.informers.all(), runnables=runnables)
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run(), name="controllers")
        await manager.wait_synced()
        await collector.synced.wait()
        if ready is not None:
            ready.set()


def _statefulsets(wiring: Wiring) -> tuple[Runnable, ...]:
    informers, recorder = wiring.informers, wiring.recorder("statefulset-controller")
    sets = StatefulSets(
        sets=informers.statefulsets,
        pods=informers.pods,
        revisions=informers.revisions,
        claims=informers.claims,
        client=wiring.client,
        clock=wiring.clock,
    )
    return recorder, build_controller("statefulset", sets, wiring.executor(recorder), MANY)


def _replicasets(wiring: Wiring) -> tuple[Runnable, ...]:
    informers, recorder = wiring.informers, wiring.recorder("replicaset-controller")
    sets = ReplicaSets(sets=informers.replicasets, pods=informers.pods, client=wiring.client, clock=wiring.clock)
    return recorder, build_controller("replicaset", sets, wiring.executor(recorder), MANY)


def _deployments(wiring: Wiring) -> tuple[Runnable, ...]:
    informers, recorder = wiring.informers, wiring.recorder("deployment-controller")
    deployments = Deployments(
        deployments=informers.deployments,
        sets=informers.replicasets,
        pods=informers.pods,
        client=wiring.client,
        clock=wiring.clock,
    )
    return recorder, build_controller("deployment", deployments, wiring.executor(recorder), MANY)


def _autoscalers(wiring: Wiring) -> tuple[Runnable, ...]:
    informers, recorder = wiring.informers, wiring.recorder("horizontal-pod-autoscaler")
    autoscalers = Autoscalers(
        autoscalers=informers.autoscalers, pods=informers.pods, client=wiring.client, clock=wiring.clock
    )
    return recorder, build_controller("horizontalpodautoscaler", autoscalers, wiring.executor(recorder))


def _scheduler(wiring: Wiring) -> tuple[Runnable, ...]:
    informers, recorder = wiring.informers, wiring.recorder(scheduling.NAME)
    sources = scheduling.Sources(
        pods=informers.pods, nodes=informers.nodes, claims=informers.claims, namespaces=informers.namespaces
    )
    return recorder, scheduling.Scheduler(wiring.executor(recorder), sources, recorder, wiring.clock)


def _volume_binder(wiring: Wiring, root: Path) -> tuple[Runnable, ...]:
    informers, recorder = wiring.informers, wiring.recorder("persistentvolume-controller")
    binder = VolumeBinder(
        claims=informers.claims,
        volumes=informers.volumes,
        classes=informers.classes,
        pods=informers.pods,
        client=wiring.client,
        root=root,
    )
    return recorder, build_controller("persistent-volume", binder, wiring.executor(recorder))


def _nodes(wiring: Wiring) -> tuple[Runnable, ...]:
    """Build the controllers of nodes, and of pods whose nodes are lost."""
    informers, recorder = wiring.informers, wiring.recorder("taint-eviction-controller")
    executor = wiring.executor(recorder)
    taints = NodeTaints(nodes=informers.nodes, clock=wiring.clock)
    eviction = TaintEviction(pods=informers.pods, nodes=informers.nodes, clock=wiring.clock)
    collector = PodGarbageCollector(wiring.client, informers.pods, informers.nodes)
    return (
        recorder,
        build_controller("node-lifecycle", taints, executor, ONE),
        build_controller("taint-eviction", eviction, executor),
        build_controller("pod-garbage-collector", collector, executor, ONE),
    )


def _housekeeping(wiring: Wiring) -> tuple[Runnable, ...]:
    """Build the controllers that write no events."""
    informers, recorder = wiring.informers, wiring.recorder("controller-manager")
    executor = wiring.executor(recorder)
    namespaces = Namespaces(namespaces=informers.namespaces, client=wiring.client, clock=wiring.clock)
    slices = EndpointSlices(
        services=informers.services,
        pods=informers.pods,
        slices=informers.slices,
        clock=wiring.clock,
    )
    budgets = DisruptionBudgets(
        budgets=informers.budgets,
        pods=informers.pods,
        statefulsets=informers.statefulsets,
        replicasets=informers.replicasets,
        deployments=informers.deployments,
        clock=wiring.clock,
    )
    return (
        recorder,
        build_controller("disruption", budgets, executor),
        build_controller("namespace", namespaces, executor),
        build_controller("endpointslice", slices, executor),
    )
