"""Implements the worker of one pod, a loop that performs the steps of `lifecycle.py` and writes the status.

A round: record exits, update volumes, perform the steps until none is left, write the status if it changed. Then the
loop waits for a change (of the pod's object, a container or a probe's verdict) or for the time of the decision.
"""

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, assert_never

import structlog
from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.errors import ConflictError, KubeError, NotFoundError
from kuberuntime.objects import duration, meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podstate import ALL_RESTARTED
from kuberuntime.objects.resources import PODS
from localkube import wellknown
from localkube.kubelet.accelerators import deviceallocations
from localkube.kubelet.accelerators.allocation import ShortageError
from localkube.kubelet.container import launch
from localkube.kubelet.container.containers import Containers
from localkube.kubelet.container.podruntime import RETRY, PodRuntime
from localkube.kubelet.pod import lifecycle, podstatus, state
from localkube.kubelet.pod.lifecycle import Step
from localkube.kubelet.pod.state import Waiting
from localkube.kubelet.processes.kernelerrors import explain
from localkube.kubelet.processes.runner import SandboxSpec, StartError
from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.volumes import directories

API_RETRY: Final = timedelta(seconds=1)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SandboxLostError(Exception):
    """The pod's sandbox was lost, with all its processes."""


class PodWorker:
    """Runs one pod until it is completely removed."""

    def __init__(self, cell: PodRuntime, tasks: asyncio.TaskGroup) -> None:
        self._cell = cell
        self._containers = Containers(cell, tasks)
        self._node = cell.node
        self._published: JSONObject = meta.status(cell.pod)

    async def run(self) -> None:
        """Perform steps until the pod is finished. If cancelled, terminate its containers gracefully.

        Raise `SandboxLostError` as soon as the sandbox is lost; this is not written to the API.
        """
        try:
            while not self._cell.is_finished:
                self._cell.changed.clear()
                await self._wait_for_change(await self._perform_round())
        except asyncio.CancelledError:
            await self._containers.terminate_all(self._patience_at_end())
            raise
        finally:
            self._containers.close()

    def _patience_at_end(self) -> timedelta:
        """Return the termination time of processes when the cluster stops, minus the time that a deleted pod used."""
        grace, kill_at = duration.from_seconds(podspec.grace_period(self._cell.pod)), self._cell.state.kill_at
        elapsed = timedelta() if kill_at is None else self._cell.now() - (kill_at - grace)
        return max(min(grace, self._node.settings.grace_at_end) - elapsed, timedelta())

    async def _perform_round(self) -> datetime | None:
        """Perform one round of steps, and return the time of the next reconciliation. Rejected writes are retried."""
        try:
            return await self._advance()
        except ConflictError:
            return None  # the informer will deliver the newer object
        except KubeError as error:
            log.warning("failed to write the pod status", pod=str(meta.key(self._cell.pod)), error=str(error))
            return self._cell.now() + API_RETRY

    async def _advance(self) -> datetime | None:
        cell = self._cell
        while True:
            self._require_sandbox()
            await self._containers.record_exits()
            await self._containers.apply_cpu_limits()
            await self._refresh_volumes()
            cell.follow_clock()
            decision = lifecycle.next_steps(cell.pod, cell.state, cell.now())
            if not decision.steps:
                if not cell.state.has_sandbox and (cell.state.failure or lifecycle.is_settled(cell.pod, cell.state)):
                    self._node.release_devices(cell.pod)  # without a sandbox, there is nothing to remove
                await self._publish()
                return decision.wake_at
            for step in decision.steps:
                await self._perform(step)
            if self._cell.is_finished:
                return None

    def _require_sandbox(self) -> None:
        if self._cell.is_sandbox_lost:
            raise SandboxLostError

    async def _wait_for_change(self, wake_at: datetime | None) -> None:
        if self._cell.is_finished:
            return
        delay = None if wake_at is None else max((wake_at - self._cell.now()).total_seconds(), 0)
        with suppress(TimeoutError):
            async with timeouts.within(delay):
                await self._cell.changed.wait()

    async def _perform(self, step: Step) -> None:  # noqa: C901, PLR0912 - one case per step
        cell = self._cell
        match step:
            case lifecycle.PrepareVolumes():
                await self._prepare_volumes()
            case lifecycle.CreateSandbox():
                await self._create_sandbox()
            case lifecycle.Start(name):
                self._containers.start(name)
            case lifecycle.Delay(name, until, wait):
                cell.update_container(
                    name,
                    partial(state.record_delay, waiting=podstatus.backoff_waiting(cell.pod, name, wait), until=until),
                )
                cell.emit("BackOff", f"Back-off restarting failed container {name}", name)
            case lifecycle.Stop(name, kill_at, message, replaced):
                self._containers.stop(name, kill_at, message, replaced=replaced)
            case lifecycle.Terminate(name, kill_at):
                await self._containers.terminate(name, kill_at)
            case lifecycle.Kill(name):
                await self._containers.kill(name)
            case lifecycle.RestartAll(name):
                await self._restart_all(name)
            case lifecycle.StartOver():
                cell.set_state(state.record_restart_of_all(cell.state, cell.now()))
            case lifecycle.Fail(reason, message):
                cell.set_state(replace(cell.state, failure=Waiting(reason, message)))
                cell.emit(reason, message)
            case lifecycle.StopPod(kill_at):
                cell.set_state(cell.state.stopping_by(kill_at))
            case lifecycle.RemoveSandbox():
                await self._remove_sandbox()
            case lifecycle.Finish():
                await self._finish()
            case _:
                assert_never(step)

    async def _restart_all(self, name: str) -> None:
        """Start to restart all containers, and publish this state, because containers can exit immediately."""
        self._cell.set_state(replace(self._cell.state, restarted_by=name))
        self._cell.emit(
            ALL_RESTARTED, f"Container {name} terminated, restarting all containers of the pod in place", name
        )
        await self._publish()

    async def _prepare_volumes(self) -> None:
        cell = self._cell
        try:
            context = await cell.context()
            stubs = [launch.stub_reason(it, context, self._node.settings) for it in podspec.all_containers(cell.pod)]
            bound = replace(
                await self._node.objects.claims_of(cell.pod), stand_ins=self._node.settings.volume_directory
            )
            lenient = replace(context, skips_missing_sources=any(stubs))
            self._containers.volumes = directories.prepare(lenient, bound, self._volume_directory, self._version_name())
        except (SpecError, OSError, ValueError) as error:  # ValueError: the path contains NUL
            self._retry_later("FailedMount", f"failed to set up volumes: {explain(error)}")
        else:
            cell.set_state(replace(cell.state, has_volumes=True, problem="", not_before=None))

    async def _refresh_volumes(self) -> None:
        """Update the files from ConfigMaps, Secrets and the fields of the pod."""
        cell = self._cell
        is_stale, cell.are_sources_stale = cell.are_sources_stale, False
        if is_stale and cell.state.has_volumes and directories.has_written(cell.pod):
            try:
                directories.refresh(await cell.context(), self._volume_directory, self._version_name())
            except SpecError:
                return  # if a source cannot be read, the files are not changed
            except (OSError, ValueError) as error:
                cell.emit("FailedMount", f"failed to update volumes: {explain(error)}")

    @property
    def _volume_directory(self) -> Path:
        return self._cell.directory / "volumes"

    def _version_name(self) -> str:
        return self._cell.now().strftime("%Y_%m_%d_%H_%M_%S.%f")

    async def _create_sandbox(self) -> None:
        cell, hosts = self._cell, self._node.hosts
        if not await self._has_devices():
            return
        hosts.set_pod(cell.pod, "")
        try:
            hostname = podspec.kernel_hostname(cell.pod, self._node.settings.cluster_domain)
        except SpecError as error:
            self._retry_later("FailedCreatePodSandBox", f"failed to create the sandbox: {explain(error)}")
            return
        spec = SandboxSpec(
            id=cell.uid,
            hostname=hostname,
            directory=cell.directory / "sandbox",
            hosts_directory=hosts.directory(cell.pod),
            host_network=podspec.uses_host_network(cell.pod, stub=self._node.settings.stub),
            share_process_namespace=bool(meta.spec(cell.pod).get("shareProcessNamespace")),
            memory=directories.memory_volumes(cell.pod, self._volume_directory),
        )
        try:
            ip = await self._node.runner.create_sandbox(spec, cell.mark_sandbox_lost)
        except (StartError, OSError) as error:
            self._retry_later("FailedCreatePodSandBox", f"failed to create the sandbox: {explain(error)}")
            return
        cell.set_state(replace(cell.state, has_sandbox=True, ip=ip, problem="", not_before=None))
        hosts.set_pod(cell.pod, ip)
        try:
            await hosts.wait_until_written()
        except OSError as error:  # `Hosts` retries
            cell.emit("FailedCreatePodSandBox", f"failed to update pod names: {explain(error)}")

    async def _has_devices(self) -> bool:
        """Allocate the devices of the pod, and record them in the pod before a container can start."""
        cell = self._cell
        try:
            record = self._node.devices.allocate(cell.pod)
        except ShortageError as error:
            self._retry_later("FailedAllocateDevices", f"failed to allocate devices: {error}")
            return False
        text = deviceallocations.annotation_value(record)
        if record and meta.annotations(cell.pod).get(wellknown.DEVICES) != text:
            patch = {"metadata": {"uid": cell.uid, "annotations": {wellknown.DEVICES: text}}}
            cell.update_if_newer(await self._node.client.patch(PODS, meta.key(cell.pod), patch, kind="merge"))
        return True

    def _retry_later(self, reason: str, problem: str) -> None:
        """Retry the step later. Report the problem unless it was already reported."""
        if problem != self._cell.state.problem:
            self._cell.emit(reason, problem)
        self._cell.set_state(replace(self._cell.state, problem=problem, not_before=self._cell.now() + RETRY))

    async def _remove_sandbox(self) -> None:
        await self._node.runner.remove_sandbox(self._cell.uid)
        self._node.release_devices(self._cell.pod)
        self._cell.set_state(replace(self._cell.state, has_sandbox=False))
        self._node.hosts.set_pod(self._cell.pod, "")

    async def _publish(self) -> None:
        """Write the status if it differs from the status in the API."""
        cell = self._cell
        self._require_sandbox()
        new = podstatus.build(cell.pod, cell.state, cell.now(), self._node.facts(cell.pod))
        if cell.state.is_deleted or new in (self._published, meta.status(cell.pod)):
            cell.reported.set()
            return
        identity = {"uid": cell.uid, "resourceVersion": meta.resource_version(cell.pod)}
        patch = {"metadata": identity, "status": new}
        cell.update_if_newer(
            await self._node.client.patch(PODS, meta.key(cell.pod), patch, kind="merge", subresource="status")
        )
        self._published = new
        cell.reported.set()

    async def _finish(self) -> None:
        cell = self._cell
        if not cell.state.is_deleted:
            await self._publish()
            await self._delete()
        self._node.hosts.remove_pod(cell.pod)
        self._node.release_devices(cell.pod)
        self._node.previous_logs.retain(cell.pod, cell.directory)
        self._cell.is_finished = True
        self._cell.reported.set()

    async def _delete(self) -> None:
        with suppress(NotFoundError, ConflictError):  # the pod is already deleted, or a new pod has the same name
            await self._node.client.delete(PODS, meta.key(self._cell.pod), uid=self._cell.uid, grace_period=0)
