"""Starts and stops the containers of one pod, and records their exits.

The pod's worker calls everything here, in the order that `lifecycle.py` decides. A start is a task with these parts:
plan the process (`launch.py`), check its ports, open its log, start it with the runner, run the postStart hook, probe.
The exit of the process wakes the worker, which records it with `record_exits`.
"""

import asyncio
import errno
import signal
import socket
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kuberuntime import timeouts
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.container import health, hooks, launch
from localkube.kubelet.container.containerrun import ContainerRun, fresh_termination_file
from localkube.kubelet.container.hooks import HookError
from localkube.kubelet.container.images import UnrunnableError
from localkube.kubelet.container.launch import Launch, LaunchInputs
from localkube.kubelet.container.podruntime import RETRY, PodRuntime
from localkube.kubelet.logfiles.logwriter import LogWriter
from localkube.kubelet.node.oomwatcher import MemoryLimit
from localkube.kubelet.pod import state
from localkube.kubelet.pod.state import Phase, Waiting
from localkube.kubelet.processes.descriptors import require_spare
from localkube.kubelet.processes.kernelerrors import RequestError, explain
from localkube.kubelet.processes.runner import ExhaustedError, Exit, StartError
from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.podspec import SpecError
from localkube.kubelet.spec.probes import Kind

CONFIG_ERROR: Final = "CreateContainerConfigError"
CREATE_ERROR: Final = "CreateContainerError"

OUT_OF_MEMORY: Final = "OOMKilled"
MEBIBYTE: Final = 2**20

SPARE: Final = 64
"""The number of file descriptors that are reserved for API clients if container logs use many descriptors."""


class Containers:
    """Starts and stops the containers of a pod. `volumes` contains its volume directories."""

    def __init__(self, cell: PodRuntime, tasks: asyncio.TaskGroup) -> None:
        self.volumes: Mapping[str, Path] = {}
        self._cell = cell
        self._runner = cell.node.runner
        self._tasks = tasks
        self._starts: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Cancel all tasks and close all logs, because the sandbox was removed or the kubelet is stopping."""
        for task in self._starts:
            task.cancel()
        for run in self._cell.runs.values():
            self._cell.node.memory.discard(run.id)
            run.close()
        self._cell.runs.clear()

    async def terminate_all(self, patience: timedelta) -> None:
        """Terminate all processes because the cluster stops. Wait for them for at most this time.

        This is not recorded: the pod is not stopped, but continues when the cluster starts again.
        """
        if not patience:
            return
        live = self._cell.running
        for run in live:
            await self._runner.signal(run.id, _stop_signal(run.launch.container))
        with suppress(TimeoutError):
            async with timeouts.within(patience.total_seconds()):
                while any(run.exit is None for run in live):
                    self._cell.changed.clear()
                    await self._cell.changed.wait()

    def start(self, name: str) -> None:
        """Start a container."""
        self._cell.update_container(name, state.record_start)
        task = self._tasks.create_task(self._start(name))
        self._starts.add(task)
        task.add_done_callback(self._starts.discard)

    def stop(self, name: str, kill_at: datetime, message: str, *, replaced: bool = False) -> None:
        """Stop a container. If it has a preStop hook, run the hook first."""
        self._cell.emit("Killing", message, name)
        run = self._cell.runs[name]
        for task in run.tasks:
            task.cancel()
        hook = podspec.lifecycle_hook(run.launch.container, "preStop")
        self._cell.update_container(
            name, partial(state.record_stop, kill_at=kill_at, hook="running" if hook else "done", replaced=replaced)
        )
        if hook:
            run.hook = self._spawn(run, self._run_pre_stop(run, hook))

    async def terminate(self, name: str, kill_at: datetime) -> None:
        """Send the stop signal to a container's process."""
        run = self._cell.runs[name]
        if run.hook is not None and not run.hook.done():
            run.hook.cancel()
            self._cell.emit(
                "FailedPreStopHook", "PreStopHook failed: the hook did not complete within the grace period", name
            )
        self._cell.update_container(name, partial(state.record_stop, kill_at=kill_at, hook=""))
        await self._runner.signal(run.id, _stop_signal(run.launch.container))

    async def kill(self, name: str) -> None:
        """Kill all processes of a container."""
        self._cell.update_container(name, lambda current: replace(current, is_killed=True))
        await self._runner.signal(self._cell.runs[name].id, signal.SIGKILL, everything=True)

    async def record_exits(self) -> None:
        """Record the exits of containers since the last call."""
        for run in list(self._cell.runs.values()):
            if run.is_launched and run.exit is not None:
                await self._record_exit(run, run.exit)

    async def apply_cpu_limits(self) -> None:
        """Apply the CPU limits of containers, which a resize can change."""
        for run in self._cell.running:
            cores = podspec.cpu_limit(self._cell.pod, run.name)
            if run.launch.argv and cores != run.cores:
                run.cores = cores
                await self._runner.limit_cpu(run.pid, cores)

    async def _record_exit(self, run: ContainerRun, ending: Exit) -> None:
        await self._runner.signal(run.id, signal.SIGKILL, everything=True)
        self._cell.node.memory.discard(run.id)
        run.close()
        if self._cell.runs.get(run.name) is run:
            del self._cell.runs[run.name]
        quote = self._cell.node.settings.quote_failures
        message = run.message(ending, self._cell.log_directory(run.name), quote=quote)
        now = self._cell.now()
        reason = OUT_OF_MEMORY if run.excess else ""
        self._cell.update_container(
            run.name, partial(state.record_exit, ending=ending, message=message, now=now, reason=reason)
        )
        conflict = await self._port_conflict(run.launch.container) if ending.code else ""
        if conflict:
            self._cell.emit("PortConflict", conflict, run.name)

    async def _start(self, name: str) -> None:
        container = podspec.find_container(self._cell.pod, name) or {"name": name}
        try:
            plan = await self._plan(container)
            if conflict := await self._port_conflict(plan.container):
                raise UnrunnableError("PortConflict", conflict)  # noqa: TRY301 - one of the errors below
            await self._launch(plan)
        except (SpecError, ValueError) as error:  # ValueError: the path contains NUL
            self._reject_start(name, Waiting(CONFIG_ERROR, str(error)))
        except UnrunnableError as why:
            self._reject_start(name, Waiting(why.reason, str(why)))
        except (OSError, RequestError, ExhaustedError) as error:  # no disk space, or too many open files or processes
            self._reject_start(name, Waiting(CREATE_ERROR, explain(error)))

    async def _plan(self, container: JSONObject) -> Launch:
        cell = self._cell
        file = cell.directory / "termination" / container["name"]
        fresh_termination_file(file)
        around = LaunchInputs(cell.node.settings, self.volumes, file)
        return launch.plan(container, await cell.context(), around)

    def _reject_start(self, name: str, waiting: Waiting) -> None:
        previous = self._cell.state.containers[name].waiting
        self._cell.update_container(
            name, partial(state.record_rejected_start, waiting=waiting, not_before=self._cell.now() + RETRY)
        )
        if waiting != previous:
            self._cell.emit("Failed", f"{waiting.reason}: {waiting.message}", name)

    async def _launch(self, plan: Launch) -> None:
        cell = self._cell
        name: str = plan.container["name"]
        require_spare(SPARE)
        log = LogWriter(cell.log_directory(name), cell.node.clock)
        run = ContainerRun(cell.uid, plan, log, cell.directory / "termination" / name)
        self._cell.runs[name] = run
        try:
            run.pid = await self._runner.start_container(run.spec(), partial(self._on_exit, run))
        except StartError as error:
            log.write_message(str(error))
            run.close()
            del self._cell.runs[name]
            if isinstance(error, ExhaustedError):
                raise
            cell.update_container(name, partial(state.record_start_failure, message=str(error), now=cell.now()))
            cell.emit("Failed", f"Error: {error}", name)
            return
        finally:
            log.close_process_ends()
        cell.update_container(
            name,
            partial(
                state.record_launch,
                container_id=run.id,
                image=str(plan.container.get("image") or ""),
                image_id=plan.image_id,
                now=cell.now(),
            ),
        )
        run.is_launched = True
        cell.emit("Created", f"Created container {name}", name)
        cell.emit("Started", f"Started container {name}", name)
        self._spawn(run, self._run_hooks_and_probes(run))
        if plan.argv:
            limit = partial(self._memory_limit, name)
            cell.node.memory.add(run.id, MemoryLimit(run.pid, limit, partial(self._handle_memory_excess, run)))

    async def _handle_memory_excess(self, run: ContainerRun, memory: int) -> None:
        """Kill a container that exceeds its memory limit, or report it if limits are not enforced."""
        limit = self._memory_limit(run.name)
        text = f"used {memory / MEBIBYTE:.0f}Mi of memory, and its limit is {limit / MEBIBYTE:.0f}Mi"
        if self._cell.node.settings.memory_limits:
            run.excess = text
            await self._runner.signal(run.id, signal.SIGKILL, everything=True)
        else:
            self._cell.update_container(run.name, lambda current: replace(current, excess=text))

    def _memory_limit(self, name: str) -> int:
        """Return the current limit of a container in bytes, which a resize can change."""
        return podspec.memory_limit(self._cell.pod, name)

    def _on_exit(self, run: ContainerRun, ending: Exit) -> None:
        run.exit = ending
        self._cell.changed.set()

    def _spawn(self, run: ContainerRun, coroutine: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._tasks.create_task(coroutine)
        run.tasks.add(task)
        task.add_done_callback(run.tasks.discard)
        return task

    async def _run_hooks_and_probes(self, run: ContainerRun) -> None:
        """Run the postStart hook, and then the probes, until the container terminates."""
        container = run.launch.container
        hook = podspec.lifecycle_hook(container, "postStart")
        if hook:
            try:
                await hooks.run(self._runner, hook, container, run.id, self._cell.state.ip)
            except HookError as error:
                self._cell.emit("FailedPostStartHook", f"PostStartHook failed: {error}", run.name)
                self._cell.update_container(
                    run.name, lambda now: replace(now, phase=Phase.RUNNING, unhealthy="postStart hook")
                )
                return
        kinds = frozenset(kind for kind, _ in podspec.container_probes(container))
        is_sidecar = podspec.is_sidecar(container, self._cell.pod)
        self._cell.update_container(run.name, partial(state.record_running, probes=kinds, is_sidecar=is_sidecar))
        if kinds:
            await health.watch(self._target(run, kinds, is_sidecar=is_sidecar))

    def _target(self, run: ContainerRun, kinds: frozenset[str], *, is_sidecar: bool) -> health.ProbeTarget:
        def report(kind: Kind, good: bool) -> None:  # noqa: FBT001 - the verdict itself
            change = partial(state.record_probe, kind=kind, probes=kinds, good=good, is_sidecar=is_sidecar)
            self._cell.update_container(run.name, change)

        def report_problem(problem: str) -> None:
            if problem != run.last_problem:
                self._cell.emit("Unhealthy", problem, run.name)
            run.last_problem = problem

        return health.ProbeTarget(
            runner=self._runner,
            container=run.launch.container,
            container_id=run.id,
            ip=self._cell.state.ip,
            pid=run.pid,
            report=report,
            report_problem=report_problem,
        )

    async def _run_pre_stop(self, run: ContainerRun, hook: JSONObject) -> None:
        try:
            await hooks.run(self._runner, hook, run.launch.container, run.id, self._cell.state.ip)
        except HookError as error:
            self._cell.emit("FailedPreStopHook", f"PreStopHook failed: {error}", run.name)
        self._cell.update_container(run.name, lambda current: replace(current, hook="done"))

    async def _port_conflict(self, container: JSONObject) -> str:
        """Return an error about a declared port that is in use at the pod address, or an empty string."""
        cell, settings = self._cell, self._cell.node.settings
        if settings.capabilities.network == "isolated" and not podspec.uses_host_network(cell.pod, stub=settings.stub):
            return ""
        for port in podspec.declared_ports(container):
            if await self._is_taken(port):
                holder = cell.node.port_user(port, cell.uid) or "a different process on this machine"
                return (
                    f"port {port} is in use by {holder}. All pods share the network of this machine, so use a "
                    "different port"
                )
        return ""

    async def _is_taken(self, port: int) -> bool:
        try:
            sock = await self._runner.open_socket(self._cell.uid)
        except StartError:
            return False  # the sandbox no longer exists, which the start reports
        with sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # lingering connections do not count
            try:
                sock.bind((self._cell.state.ip, port))
            except OSError as error:
                return error.errno == errno.EADDRINUSE
        return False


def _stop_signal(container: JSONObject) -> int:
    name = (container.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
    return signal.Signals.__members__.get(name, signal.SIGTERM)
