"""Implements the kubelet of all simulated nodes, which runs pods, and serves logs, commands and ports.

The start of a container:

1. The informer delivers a pod that is bound to one of the nodes. `Kubelet` creates its cell and its worker.
2. `PodWorker` asks `lifecycle.py` for the next steps: volumes, the sandbox, then one container after the other.
3. `Containers` plans the process (`launch.py`), starts it with the runner, and stores the run in the cell.
4. Hooks and probes of the run change the state in the cell, which wakes the worker. It writes the status of the pod.

Three objects hold a pod:

- `Kubelet` has the cells of all pods. It stores newer objects in them.
- `PodRuntime` has the object, the state and the runs of one pod. Logs, commands, connections and metrics read only it.
- `PodWorker`, with its `Containers`, has the tasks of one pod. Only they start and stop its containers. After an error
  or the loss of the sandbox, a new worker continues with the same cell.

ConfigMaps, Secrets and Services also come from informers, so that nothing is polled. When the cluster starts again,
pods that were bound before continue (`recovery.py`).
"""

import asyncio
import traceback
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import Clock
from kuberuntime.controller.executor import Recorder
from kuberuntime.objects import meta, podclaims
from kuberuntime.objects.meta import UID, JSONObject
from kuberuntime.objects.resources import PODS, SERVICES
from localkube.kubelet import access
from localkube.kubelet.accelerators.accelerator import device_uuid
from localkube.kubelet.accelerators.deviceallocations import DeviceAllocations
from localkube.kubelet.container.podruntime import PodRuntime
from localkube.kubelet.node.containerstats import ContainerStats
from localkube.kubelet.node.directoryremoval import DirectoryRemoval, PreviousLogs
from localkube.kubelet.node.hosts import HostsFiles
from localkube.kubelet.node.node import NodeContext
from localkube.kubelet.node.objects import ReferencedObjectReader, references
from localkube.kubelet.node.oomwatcher import OOMWatcher
from localkube.kubelet.pod import recovery
from localkube.kubelet.pod.state import initial_state
from localkube.kubelet.podworker import PodWorker, SandboxLostError
from localkube.kubelet.processes.kubeletsettings import KubeletSettings
from localkube.kubelet.processes.runner import ProcessRunner
from localkube.kubelet.spec import podspec
from localkube.podaccess import ExecSession, LogOptions, Stream, UsageReport

SYNC_RETRY: Final = timedelta(seconds=10)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Kubelet:
    """Runs pods on `settings.node_names`. Implements `localkube.podaccess.Node`. The runner is already started."""

    def __init__(
        self, client: Client, runner: ProcessRunner, settings: KubeletSettings, clock: Clock, events: Recorder
    ) -> None:
        self._pods = Informer(client, PODS)
        self._services = Informer(client, SERVICES)
        self._trash = DirectoryRemoval(settings.state_directory / "trash")
        self._cells: dict[UID, PodRuntime] = {}
        self._meter = ContainerStats(runner, clock)
        self._node = NodeContext(
            client=client,
            runner=runner,
            clock=clock,
            settings=settings,
            hosts=HostsFiles(settings.state_directory / "hosts", settings.cluster_domain),
            objects=ReferencedObjectReader(client),
            events=events,
            port_user=self._holder_of,
            previous_logs=PreviousLogs(settings.state_directory / "former", self._trash),
            devices=DeviceAllocations(settings.devices, exposed=settings.devices_exposed),
            release_devices=self._release_devices,
            memory=OOMWatcher(runner),
        )

    async def run(self, caught_up: asyncio.Event | None = None) -> None:
        """Run the pods of these nodes until cancelled. The runner terminates remaining processes.

        `caught_up` is set once no pod has the status of an earlier run.
        """
        informers = [self._pods, self._services, *self._node.objects.informers]
        async with asyncio.TaskGroup() as tasks:
            for informer in informers:
                tasks.create_task(informer.run())
            for informer in informers:
                await informer.wait_synced()
            self._node.devices.restore(self._pods.store.list())
            self._node.previous_logs.clear()
            self._discard_orphans()
            tasks.create_task(self._trash.run())
            tasks.create_task(self._node.hosts.run())
            tasks.create_task(self._node.memory.run())
            self._services.subscribe(self._on_service)
            self._pods.subscribe(lambda change: self._on_pod(change, tasks))
            self._node.objects.subscribe(self._on_source)
            self._node.objects.claims.subscribe(self._on_claim)
            for cell in list(self._cells.values()):
                await cell.reported.wait()
            if caught_up is not None:
                caught_up.set()

    def logs(self, pod: JSONObject, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield chunks of a container's log."""
        return access.logs(self._node, self._cells.get(meta.uid(pod)), pod, options)

    def attach(self, pod: JSONObject, container: str) -> AsyncIterator[tuple[Stream, bytes]]:
        """Yield the output of a running container after this call."""
        return access.attach(self._node, self._cells.get(meta.uid(pod)), pod, container)

    async def exec(
        self, pod: JSONObject, container: str, command: tuple[str, ...], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Start a command in a running container."""
        run = access.running_container(self._cells.get(meta.uid(pod)), pod, container)
        return await access.start(self._node, run, command, stdin=stdin, tty=tty)

    async def dial(self, pod: JSONObject, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to `localhost:port` inside the pod."""
        return await access.dial(self._cells.get(meta.uid(pod)), pod, port)

    async def measure(self) -> UsageReport:
        """Return the resource usage of the running containers."""
        measured = await self._meter.measure(self._running)
        if not (records := self._node.devices.records):
            return measured
        from localkube.kubelet.node import devicestats  # loads NVML, which is required only for real devices

        return replace(measured, devices=await devicestats.measure(records, self._running()))

    @property
    def devices(self) -> DeviceAllocations:
        """Return the real devices and their pods."""
        return self._node.devices

    def running(self, pod: JSONObject) -> list[str]:
        """Return the IDs of the running containers of a pod in the runner."""
        cell = self._cells.get(meta.uid(pod))
        return [run.id for run in cell.running] if cell else []

    def pod_of(self, uid: UID) -> JSONObject | None:
        """Return the kubelet's pod with this UID."""
        cell = self._cells.get(uid)
        return cell.pod if cell else None

    def _running(self) -> Mapping[int, tuple[UID, str]]:
        """Return the running containers by the PID of their process."""
        return {run.pid: (uid, run.name) for uid, cell in self._cells.items() for run in cell.running}

    def pids(self, uid: UID) -> list[int]:
        """Return the host PIDs of the main processes of a pod's running containers."""
        cell = self._cells.get(uid)
        return [run.pid for run in cell.running] if cell else []

    def _on_pod(self, change: Change, tasks: asyncio.TaskGroup) -> None:
        pod = change.object
        if meta.spec(pod).get("nodeName") not in self._node.settings.node_names:
            return
        cell = self._cells.get(meta.uid(pod))
        if change.new is None:
            self._node.hosts.remove_pod(pod)
            if cell is not None:
                cell.mark_deleted()
                del self._cells[meta.uid(pod)]
            return
        if cell is None:
            cell = self._add_pod(pod)
            tasks.create_task(self._run_worker(cell))
        cell.store_and_wake(pod)
        self._node.hosts.set_pod(pod, cell.address)

    def _add_pod(self, pod: JSONObject) -> PodRuntime:
        cell = self._cells[meta.uid(pod)] = PodRuntime(pod, initial_state(pod, self._node.clock.now()), self._node)
        cell.recover(recovery.CLUSTER_RESTARTED)
        return cell

    async def _run_worker(self, cell: PodRuntime) -> None:
        """Run the worker of one pod. An internal error is reported on this pod, and does not affect other pods."""
        last_failure = ""
        while not cell.is_finished:
            is_broken = False
            try:
                async with asyncio.TaskGroup() as tasks:
                    await PodWorker(cell, tasks).run()
            except* SandboxLostError:
                cell.recover(recovery.NODE_RESTARTED)
                self._node.hosts.set_pod(cell.pod, cell.address)
            except* Exception as errors:  # noqa: BLE001 - the loop edge of a pod: its error must not end other pods
                last_failure, is_broken = self._report_error(cell, errors, last_failure), True
            if is_broken:  # not above, because until Python 3.11.4 a cancellation in `except*` is raised in a group
                await self._node.runner.remove_sandbox(cell.uid)
                cell.recover(recovery.NODE_RESTARTED)
                await asyncio.sleep(SYNC_RETRY.total_seconds())

    def _report_error(self, cell: PodRuntime, errors: ExceptionGroup[Exception], last_failure: str) -> str:
        """Log an internal error, with its traceback for the first occurrence. Return it in one line."""
        failure, pod = repr(errors.exceptions[0]), str(meta.key(cell.pod))
        if failure == last_failure:
            log.error("pod worker failed again", pod=pod, failure=failure)
        else:
            log.critical("pod worker failed", pod=pod, failure=traceback.format_exception(errors))
        cell.emit("FailedSync", f"internal error, retrying: {failure}")
        return failure

    def _on_service(self, change: Change) -> None:
        if change.new is None:
            self._node.hosts.remove_service(change.object)
        else:
            self._node.hosts.set_service(change.new)

    def _on_source(self, change: Change) -> None:
        """Reconcile the pods that refer to a ConfigMap or Secret with this name."""
        key = meta.key(change.object)
        for cell in self._cells.values():
            if meta.namespace(cell.pod) == key.namespace and any(key.name in names for names in references(cell.pod)):
                cell.refresh()

    def _on_claim(self, change: Change) -> None:
        """Reconcile the pods that refer to a claim with this name, because the claim might be bound."""
        key = meta.key(change.object)
        for cell in self._cells.values():
            if meta.namespace(cell.pod) == key.namespace and key.name in podclaims.claims_by_volume(cell.pod).values():
                cell.refresh()

    def _release_devices(self, pod: JSONObject) -> None:
        """Free the devices of a pod without processes, and wake the pods that wait for devices."""
        for uid in self._node.devices.release(meta.uid(pod)):
            if (cell := self._cells.get(uid)) is not None:
                cell.set_state(cell.state.retry_now())

    def report_failures(self, failures: Mapping[str, str]) -> None:
        """Stop allocating failed devices, and record an event for each pod that uses one of them.

        `failures` has the reasons by UUID.
        """
        ledger = self._node.devices
        new = failures.keys() - ledger.unhealthy.keys()
        ledger.unhealthy = failures
        for _, uid, device in ledger.allocated_devices():
            if device_uuid(device) in new and (cell := self._cells.get(uid)) is not None:
                cell.emit("DeviceUnhealthy", f"{device_uuid(device)} is unhealthy: {failures[device_uuid(device)]}")

    def _discard_orphans(self) -> None:
        uids = {meta.uid(pod) for pod in self._pods.store.list()}
        directory = self._node.settings.state_directory / "pods"
        for path in directory.iterdir() if directory.is_dir() else ():
            if path.name not in uids:
                self._trash.add(path)

    def _holder_of(self, port: int, uid: str) -> str:
        """Return the name of another pod with a running container that declares the port."""
        for cell in self._cells.values():
            live = [name for name, container in cell.state.containers.items() if container.is_live]
            declared = [podspec.find_container(cell.pod, name) or {} for name in live]
            if cell.uid != uid and any(port in podspec.declared_ports(container) for container in declared):
                return f"pod {meta.key(cell.pod)}"
        return ""
