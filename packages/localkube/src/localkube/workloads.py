"""Runs the controllers and the kubelet of a cluster in one process.

Their modules are imported while the launcher of pods starts: both take about the same time.
"""

import asyncio
import os
from asyncio import TaskGroup
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from localkube.assembly import Cluster
from localkube.clustersettings import Settings
from localkube.kubelet.processes.runner import Capabilities, ProcessRunner
from localkube.kubelet.sandbox.sandboxrunner import SandboxRunner

if TYPE_CHECKING:
    from localkube.kubelet.processes.kubeletsettings import KubeletSettings

CONTROLLERS: Final = "system:controllers"
KUBELET: Final = "system:kubelet"

FAULTS: Final = "system:faults"

GRACE_AT_END: Final = timedelta(seconds=3)
"""The time between SIGTERM and SIGKILL when the cluster stops. It is shorter for pods with a shorter grace period."""

NO_PODS: Final = Capabilities(has_namespaces=False, network="shared")
"""The capabilities of a cluster that does not run pods."""


@asynccontextmanager
async def working(
    cluster: Cluster, processes: ProcessRunner | None = None, *, kubelet: bool = True
) -> AsyncIterator[Capabilities]:
    """Run controllers and pods, and yield the capabilities that this machine granted.

    Pods are processes of this machine, in sandboxes, unless another runner is given. At the end they get SIGTERM and a
    few seconds; then every process is killed. Without `kubelet` pods are scheduled, but do not start, and there are no
    faults.

    When it yields, no pod of an earlier run has the status of that run, so that waiting for readiness works.
    """
    async with (
        _claim_devices(cluster.settings),
        _runner(cluster.settings, processes) if kubelet else nullcontext() as granted,
        TaskGroup() as tasks,
    ):
        parts = [tasks.create_task(_run_controllers(cluster, ready := asyncio.Event()))]
        if granted:
            parts.append(tasks.create_task(_run_kubelet(cluster, *granted, caught_up := asyncio.Event())))
            await caught_up.wait()
        await ready.wait()
        try:
            yield granted[1] if granted else NO_PODS
        finally:
            for task in parts:
                task.cancel()


@asynccontextmanager
async def _claim_devices(settings: Settings) -> AsyncIterator[None]:
    """Claim the real devices of the nodes, if they have any."""
    devices = [device for own in settings.nodes.devices.by_node for device in own]
    if not devices:
        yield
        return
    from localkube.kubelet.accelerators import hostclaims
    from localkube.kubelet.accelerators.accelerator import device_uuid

    with hostclaims.claim_devices(map(device_uuid, devices)):
        yield


@asynccontextmanager
async def _runner(
    settings: Settings, processes: ProcessRunner | None
) -> AsyncIterator[tuple[ProcessRunner, Capabilities]]:
    runner = processes or SandboxRunner(network=settings.network, state_directory=settings.directory)
    capabilities = await _start_runner(runner)
    try:
        yield runner, capabilities
    finally:
        await runner.stop()


async def _start_runner(runner: ProcessRunner) -> Capabilities:
    """Start the runner, and concurrently import the kubelet and the controllers."""
    starting = asyncio.create_task(runner.start())
    try:
        await asyncio.sleep(0)  # the launcher was started before, and becomes ready in a separate process
        import localkube.controllers.controllermanager
        import localkube.kubelet.kubelet  # noqa: F401 - only loaded

        return await starting
    except BaseException:
        starting.cancel()
        raise


async def _run_controllers(cluster: Cluster, ready: asyncio.Event) -> None:
    from localkube.controllers.controllermanager import ControllerSettings, run_controllers

    client = cluster.client(CONTROLLERS)
    settings = ControllerSettings(volumes=cluster.settings.directory / "claims", nodes=cluster.nodes)
    await run_controllers(client, settings, clock=cluster.clock, ready=ready)


async def _run_kubelet(
    cluster: Cluster, runner: ProcessRunner, capabilities: Capabilities, caught_up: asyncio.Event
) -> None:
    from kuberuntime.controller.eventrecorder import EventRecorder
    from localkube.faults import faultmanager, nodefaults
    from localkube.faults.effects import LocalPods
    from localkube.kubelet.kubelet import Kubelet
    from localkube.kubelet.node import podevents

    client = cluster.client(KUBELET)
    events = EventRecorder(client, podevents.REPORTER, cluster.settings.name, cluster.clock)
    settings = _kubelet_settings(cluster, capabilities)
    kubelet = Kubelet(client, runner, settings, cluster.clock, events)
    cluster.api.attach_node(kubelet)
    cluster.kubelets.append(kubelet)
    faults = cluster.client(FAULTS)
    await nodefaults.restore_nodes(faults)
    async with TaskGroup() as tasks:
        pods = LocalPods(faults, runner, kubelet.running)
        keeper = faultmanager.build_manager(pods, cluster.clock, cluster.parts, tasks)
        cluster.api.attach_faults(keeper.serve)
        tasks.create_task(keeper.run())
        tasks.create_task(events.run())
        if kubelet.devices.is_real:
            from localkube.kubelet.node.devicehealth import DeviceHealth
            from localkube.kubelet.node.deviceidleness import DeviceIdleness

            health = DeviceHealth(client, kubelet.devices, cluster.clock, kubelet.report_failures)
            idleness = DeviceIdleness(client, kubelet.devices, cluster.clock, kubelet.pod_of)
            tasks.create_task(health.run(idleness))
        tasks.create_task(kubelet.run(caught_up))


def _kubelet_settings(cluster: Cluster, capabilities: Capabilities) -> "KubeletSettings":
    from localkube.controllers.nodes.nodes import capacity_of, node_names
    from localkube.kubelet.processes.kubeletsettings import KubeletSettings

    settings, names = cluster.settings, node_names(cluster.nodes)
    return KubeletSettings(
        node_names=frozenset(names),
        devices=dict(zip(names, settings.nodes.devices.by_node, strict=False)),
        devices_exposed=settings.nodes.devices.are_exposed,
        allocatable={name: capacity_of(cluster.nodes.settings_of_node(index)) for index, name in enumerate(names)},
        capabilities=capabilities,
        state_directory=settings.directory,
        images=settings.images,
        stub=settings.stub,
        stub_images=settings.stub_images,
        hold_completed=settings.hold_completed,
        quote_failures=settings.quote_failures,
        memory_limits=settings.memory_limits,
        host_user=os.getuid(),
        host_environment=settings.environment,
        grace_at_end=GRACE_AT_END,
    )
