"""Provides access to running pods: logs, commands, and connections to ports."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from kuberuntime.objects import meta, podstate
from kuberuntime.objects.meta import JSONObject
from localkube.kubelet.container import exec as commands
from localkube.kubelet.container.containerrun import ContainerRun
from localkube.kubelet.container.podruntime import PodRuntime
from localkube.kubelet.logfiles import logreader
from localkube.kubelet.logfiles.logwriter import segments
from localkube.kubelet.node.node import NodeContext
from localkube.kubelet.pod.state import Phase
from localkube.kubelet.processes import podconnections
from localkube.kubelet.processes.runner import StartError
from localkube.kubelet.spec import podspec
from localkube.kubelet.spec.podspec import SpecError
from localkube.podaccess import LogOptions, NodeError, Stream

LOCALHOST = "127.0.0.1"


async def logs(
    node: NodeContext, cell: PodRuntime | None, pod: JSONObject, options: LogOptions
) -> AsyncIterator[bytes]:
    """Yield chunks of a container's log. When following, continue until the container terminates.

    The previous log is the log of the previous run. For a container that waits for its restart, it is the log of the
    last run. For the first run of a pod, it is the log of the previous pod with this name; if its container had
    restarted, of the failed run.
    """
    name = options.container
    if podspec.find_container(pod, name) is None:
        raise NodeError(f'container "{name}" is not in pod "{meta.name(pod)}"')
    directory = node.settings.pod_directory(meta.uid(pod)) / "logs" / name
    runs = _runs(directory)
    if not runs and (own := node.previous_logs.find(pod)) is not None and own.name == meta.uid(pod):
        directory = own / name  # it has terminated, and a finalizer delays its deletion
        runs = _runs(directory)
    if options.previous and not _is_waiting(cell, name):
        runs = runs[:-1]
    if options.previous and not runs and (former := node.previous_logs.find(pod)):
        directory = former / name
        runs = _runs(directory)[-2:][:1]  # a group is recreated after a container restart, so the previous run failed
    run = _choose_run(runs, pod, options)
    current = cell.runs.get(name) if cell and options.follow and not options.previous else None
    async for piece in logreader.read(directory, run, options, current.log if current else None, node.clock.now()):
        yield piece


def _is_waiting(cell: PodRuntime | None, name: str) -> bool:
    current = cell.state.containers.get(name) if cell else None
    return current is not None and current.phase is Phase.WAITING


def _runs(directory: Path) -> list[int]:
    return sorted({segment.run for segment in segments(directory)})


def _choose_run(runs: list[int], pod: JSONObject, options: LogOptions) -> int:
    """Return the run of the requested log. The error lists the available logs."""
    if runs:
        return runs[-1]
    where = f'container "{options.container}" in pod "{meta.name(pod)}"'
    if options.previous:
        raise NodeError(f"previous terminated {where} not found")
    raise NodeError(f"{where} is waiting to start{_waiting_reason(pod, options.container)}")


def _waiting_reason(pod: JSONObject, container: str) -> str:
    """Return the reason why the container waits, in the format of the kubelet (`validateContainerLogStatus`)."""
    status: JSONObject = next(
        (status for status in podstate.container_statuses(pod) if status["name"] == container), {}
    )
    reason = ((status.get("state") or {}).get("waiting") or {}).get("reason")
    return f": {reason}" if reason else ""


def running_container(cell: PodRuntime | None, pod: JSONObject, container: str) -> ContainerRun:
    """Return the container's run if it has a process."""
    run = cell.find_run(container) if cell else None
    if run is None:
        raise NodeError(f'container "{container}" in pod "{meta.name(pod)}" is not running')
    return run


async def attach(
    node: NodeContext, cell: PodRuntime | None, pod: JSONObject, container: str
) -> AsyncIterator[tuple[Stream, bytes]]:
    """Yield the output of a running container after this call, until it terminates."""
    directory = node.settings.pod_directory(meta.uid(pod)) / "logs" / container
    async for piece in logreader.follow_new_output(directory, running_container(cell, pod, container).log):
        yield piece


async def start(
    node: NodeContext, run: ContainerRun, command: tuple[str, ...], *, stdin: bool, tty: bool
) -> commands.ContainerExec:
    """Start a command in a container."""
    try:
        podspec.require_no_nul(list(command), "command")
        return await commands.start(node.runner, run.id, command, stdin=stdin, tty=tty)
    except (StartError, SpecError) as error:
        raise NodeError(str(error)) from error


async def dial(
    cell: PodRuntime | None, pod: JSONObject, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a port in the pod, on its loopback address or on the pod address.

    If pods share the host's network, the pod's address is tried first, as another pod may listen on the loopback
    address.
    """
    if cell is None or not cell.state.has_sandbox:
        raise NodeError(f'pod "{meta.name(pod)}" is not running')
    settings = cell.node.settings
    shares = settings.capabilities.network == "shared" or podspec.uses_host_network(pod, stub=settings.stub)
    addresses = (cell.state.ip, LOCALHOST) if shares else (LOCALHOST, cell.state.ip)
    errors = []
    for address in addresses:
        try:
            return await podconnections.connect(cell.node.runner, cell.uid, (address, port))
        except OSError as error:
            errors.append(f"{address}:{port}: {error.strerror or error}")
    raise NodeError(f'pod "{meta.name(pod)}": {"; ".join(errors)}')
