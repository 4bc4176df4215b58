"""Creates all controllers of the embedded cluster, and runs them with one client.

Informers are shared, so that every kind is watched once; the garbage collector additionally watches the metadata of all
kinds. Events are written under the upstream names of the controllers.
"""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import fields

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.controller import Controller, ControllerOptions, Watch
from kuberuntime.controller.eventrecorder import EventRecorder
from kuberuntime.controller.executor import Executor
from kuberuntime.controller.manager import Manager, Runnable
from kuberuntime.objects import resources
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.plan import Plan
from localkube.controllers import controllerrefs, endpointslices
from localkube.controllers.autoscaling.controller import Autoscalers
from localkube.controllers.deployment.controller import DeploymentController
from localkube.controllers.disruption.controller import DisruptionController
from localkube.controllers.endpointslices import EndpointSliceController
from localkube.controllers.garbage.controller import GarbageCollector
from localkube.controllers.namespaces import NamespaceController
from localkube.controllers.nodes import podgc
from localkube.controllers.nodes.nodes import NodeSettings, ensure_nodes
from localkube.controllers.nodes.nodetaints import NodeTaintController
from localkube.controllers.nodes.podgc import PodGarbageCollector
from localkube.controllers.nodes.tainteviction import TaintEvictionController
from localkube.controllers.replicaset.controller import ReplicaSetController
from localkube.controllers.scheduler import controller as scheduling
from localkube.controllers.statefulset import controller as statefulsets
from localkube.controllers.statefulset.controller import StatefulSetController
from localkube.controllers.volumes import volumebinder
from localkube.controllers.volumes.ephemeralclaims import EphemeralVolumeController
from localkube.controllers.volumes.volumebinder import VolumeBinder, ensure_default_class


class Informers(Struct, frozen=True, kw_only=True):
    """The informers, one per kind."""

    pods: Informer
    nodes: Informer
    namespaces: Informer
    statefulsets: Informer
    replicasets: Informer
    deployments: Informer
    autoscalers: Informer
    revisions: Informer
    claims: Informer
    volumes: Informer
    classes: Informer
    services: Informer
    slices: Informer
    budgets: Informer
    definitions: Informer

    def all(self) -> list[Informer]:
        """Return all informers."""
        return [getattr(self, field.name) for field in fields(self)]


def build_informers(client: Client) -> Informers:
    """Build the informers, which do not send requests before they run."""
    owner_indexes = {
        controllerrefs.BY_CONTROLLER: controllerrefs.controller_index,
        controllerrefs.ORPHANS: controllerrefs.orphan_index,
    }
    pod_indexes = {
        **owner_indexes,
        statefulsets.BY_PARENT: statefulsets.orphan_pod_index,
        podgc.BY_NODE: podgc.node_index,
        volumebinder.BY_CLAIM: volumebinder.pod_claim_index,
        endpointslices.BY_NAMESPACE: endpointslices.namespace_index,
    }
    return Informers(
        pods=Informer(client, resources.PODS, indexes=pod_indexes),
        nodes=Informer(client, resources.NODES),
        namespaces=Informer(client, resources.NAMESPACES),
        statefulsets=Informer(client, resources.STATEFULSETS),
        replicasets=Informer(client, resources.REPLICA_SETS, indexes=owner_indexes),
        deployments=Informer(client, resources.DEPLOYMENTS),
        autoscalers=Informer(client, resources.HORIZONTAL_POD_AUTOSCALERS),
        revisions=Informer(client, resources.CONTROLLER_REVISIONS, indexes=owner_indexes),
        claims=Informer(client, resources.PERSISTENT_VOLUME_CLAIMS),
        volumes=Informer(client, resources.PERSISTENT_VOLUMES),
        classes=Informer(client, resources.STORAGE_CLASSES),
        services=Informer(
            client, resources.SERVICES, indexes={endpointslices.BY_NAMESPACE: endpointslices.namespace_index}
        ),
        slices=Informer(
            client, resources.ENDPOINT_SLICES, indexes={endpointslices.BY_SERVICE: endpointslices.service_index}
        ),
        budgets=Informer(
            client,
            resources.POD_DISRUPTION_BUDGETS,
            indexes={endpointslices.BY_NAMESPACE: endpointslices.namespace_index},
        ),
        definitions=Informer(client, resources.CUSTOM_RESOURCE_DEFINITIONS),
    )


USUAL: Final = ControllerOptions(is_quiet=True)

MANY: Final = ControllerOptions(workers=8, is_quiet=True)
"""The options for StatefulSets and ReplicaSets, each of which also creates its pods concurrently."""

ONE: Final = ControllerOptions(workers=1, is_quiet=True)
"""The options for controllers whose keys are not urgent."""


class ControllerSettings(Struct, frozen=True, kw_only=True):
    """The settings of the controllers: the simulated nodes, and the directory for the volumes of claims."""

    volumes: Path
    nodes: NodeSettings = field(default_factory=NodeSettings)


class Driver(Protocol):
    """The driver of a controller, which defines its watches and the plan of a key."""

    def watches(self) -> Sequence[Watch]:
        """Return the watches, with the keys that a change affects."""

    async def plan(self, key: ObjectKey) -> Plan:
        """Observe the objects of a key, and return a plan for the key."""


def build_controller(name: str, driver: Driver, executor: Executor, options: ControllerOptions = USUAL) -> Controller:
    """Build a controller for a driver."""
    return Controller(name, watches=driver.watches(), plan=driver.plan, executor=executor, options=options)


async def run_controllers(
    client: Client, settings: ControllerSettings, *, clock: Clock, ready: asyncio.Event | None = None
) -> None:
    """Run all controllers until cancelled. `ready` is set when the nodes exist and all informers have synced."""
    await ensure_nodes(client, settings.nodes, clock)
    await ensure_default_class(client)
    informers = build_informers(client)
    collector = GarbageCollector(client, informers.definitions, clock)
    runnables: list[Runnable] = []
    for reporter, parts in _reporters(client, informers, clock, settings.volumes):
        recorder = EventRecorder(client, reporter, socket.gethostname(), clock)
        executor = Executor(client, recorder, clock)
        controllers = [build_controller(name, driver, executor, options) for name, driver, options in parts]
        runnables += [recorder, *controllers]
        if reporter == scheduling.NAME:
            runnables.append(_scheduler(informers, executor, recorder, clock))
    manager = Manager(informers=informers.all(), runnables=(*runnables, collector))
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run(), name="controllers")
        await manager.wait_synced()
        await collector.synced.wait()
        if ready is not None:
            ready.set()


Part: TypeAlias = tuple[str, Driver, ControllerOptions]
"""The name, the driver and the options of one controller."""


def _reporters(
    client: Client, informers: Informers, clock: Clock, root: Path
) -> tuple[tuple[str, tuple[Part, ...]], ...]:
    """Return the controllers by event reporter. Internal controllers do not write events."""
    binder = VolumeBinder(
        claims=informers.claims,
        volumes=informers.volumes,
        classes=informers.classes,
        pods=informers.pods,
        client=client,
        root=root,
    )
    eviction = TaintEvictionController(pods=informers.pods, nodes=informers.nodes, clock=clock)
    nodes = (
        ("node-lifecycle", NodeTaintController(nodes=informers.nodes, clock=clock), ONE),
        ("taint-eviction", eviction, USUAL),
        ("pod-garbage-collector", PodGarbageCollector(client, informers.pods, informers.nodes, clock), ONE),
    )
    budgets = DisruptionController(
        budgets=informers.budgets,
        pods=informers.pods,
        statefulsets=informers.statefulsets,
        replicasets=informers.replicasets,
        deployments=informers.deployments,
        clock=clock,
    )
    internal = (
        ("disruption", budgets, USUAL),
        ("namespace", NamespaceController(namespaces=informers.namespaces, client=client, clock=clock), USUAL),
        (
            "endpointslice",
            EndpointSliceController(
                services=informers.services, pods=informers.pods, slices=informers.slices, clock=clock
            ),
            USUAL,
        ),
    )
    return (
        *_workloads(client, informers, clock),
        (scheduling.NAME, ()),
        ("persistentvolume-controller", (("persistent-volume", binder, USUAL),)),
        (
            "ephemeral-volume-controller",
            (("ephemeral-volume", EphemeralVolumeController(informers.pods, informers.claims), USUAL),),
        ),
        ("taint-eviction-controller", nodes),
        ("controller-manager", internal),
    )


def _workloads(client: Client, informers: Informers, clock: Clock) -> Iterator[tuple[str, tuple[Part, ...]]]:
    sets = StatefulSetController(
        statefulsets=informers.statefulsets,
        pods=informers.pods,
        revisions=informers.revisions,
        claims=informers.claims,
        client=client,
        clock=clock,
    )
    replicas = ReplicaSetController(replicasets=informers.replicasets, pods=informers.pods, client=client, clock=clock)
    deployments = DeploymentController(
        deployments=informers.deployments,
        replicasets=informers.replicasets,
        pods=informers.pods,
        client=client,
        clock=clock,
    )
    autoscalers = Autoscalers(autoscalers=informers.autoscalers, pods=informers.pods, client=client, clock=clock)
    yield "statefulset-controller", (("statefulset", sets, MANY),)
    yield "replicaset-controller", (("replicaset", replicas, MANY),)
    yield "deployment-controller", (("deployment", deployments, MANY),)
    yield "horizontal-pod-autoscaler", (("horizontalpodautoscaler", autoscalers, USUAL),)


def _scheduler(informers: Informers, executor: Executor, recorder: EventRecorder, clock: Clock) -> Runnable:
    sources = scheduling.SchedulerInformers(
        pods=informers.pods, nodes=informers.nodes, claims=informers.claims, namespaces=informers.namespaces
    )
    return scheduling.Scheduler(executor, sources, recorder, clock)
