"""Runs a kubelet with real processes and an in-memory API server."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from testkit.apiserver import serve_api
from tests import kubeletpods
from tests.kubeletpods import NODE, Events, ObservedPods

from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import PODS
from localkube.apiserver.inprocess import InProcessTransport
from localkube.kubelet.kubelet import Kubelet
from localkube.kubelet.processes.kubeletsettings import KubeletSettings
from localkube.kubelet.processes.runner import Network, ProcessRunner
from localkube.kubelet.sandbox.sandboxrunner import SandboxRunner
from localkube.podaccess import LogOptions

PATIENCE = 120.0


def container(command: str | list[str] = "sleep 1000", name: str = "main", **fields: Any) -> JSONObject:
    """Build a container that runs a shell command."""
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    return kubeletpods.container(name, command=argv, **fields)


pod = partial(kubeletpods.pod, terminationGracePeriodSeconds=1)
"""Builds a pod that is assigned to the node, and terminates quickly."""


def object_of(kind: str, name: str, **fields: Any) -> JSONObject:
    """Build an object of the core API group."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


def is_over(found: JSONObject) -> bool:
    """Return whether the pod has terminated."""
    return meta.status(found).get("phase") in ("Succeeded", "Failed")


@dataclass
class KubeletWithProcesses(ObservedPods):
    """A cluster for tests, with a kubelet that runs processes."""

    kubelet: Kubelet
    runner: ProcessRunner
    events: Events

    async def run_to_end(self, obj: JSONObject) -> JSONObject:
        """Create a pod, and wait until it has terminated."""
        await self.client.create(PODS, obj)
        return await self.until(is_over, meta.name(obj))

    async def logs(self, found: JSONObject, name: str = "main", **options: Any) -> str:
        wanted = LogOptions(container=name, **options)
        return b"".join([piece async for piece in self.kubelet.logs(found, wanted)]).decode()

    async def output(self, obj: JSONObject) -> str:
        """Run a pod until it completes. Return its log."""
        return await self.logs(await self.run_to_end(obj))

    async def start(self, obj: JSONObject) -> JSONObject:
        """Create a pod, and wait until it is ready."""
        await self.client.create(PODS, obj)
        return await self.ready(meta.name(obj))

    async def delete(self, name: str = "web-0", grace_period: int | None = None) -> JSONObject:
        """Delete a pod, and wait until it no longer exists. Return its last state."""
        deleting = asyncio.create_task(self.gone(name))
        await asyncio.sleep(0)  # the task subscribes
        await self.client.delete(PODS, ObjectKey("default", name), grace_period=grace_period)
        return await deleting


@asynccontextmanager
async def cluster(
    directory: Path,
    *,
    network: Network = "isolated",
    plain: bool = False,
    stub: bool = False,
    memory_limits: bool = True,
) -> AsyncIterator[KubeletWithProcesses]:
    """Run a cluster for the duration of the `with` block."""
    runner = SandboxRunner(network=network, state_directory=directory, isolation="plain" if plain else "namespaces")
    settings = KubeletSettings(
        node_names=frozenset({NODE}),
        capabilities=await runner.start(),
        state_directory=directory,
        stub=stub,
        memory_limits=memory_limits,
        host_user=os.geteuid(),
        host_environment=os.environ,
    )
    events = Events()
    try:
        async with serve_api(SystemClock()) as server, asyncio.TaskGroup() as tasks:
            client = Client(InProcessTransport(server, "system:node"))
            kubelet = Kubelet(client, runner, settings, SystemClock(), events)
            pods = Informer(client, PODS)
            running = [tasks.create_task(pods.run()), tasks.create_task(kubelet.run())]
            yield KubeletWithProcesses(client, pods, kubelet, runner, events)
            for task in running:
                task.cancel()
    finally:
        await runner.stop()


def never(*containers: Any, **spec: Any) -> Any:
    """Return a pod whose containers are not restarted."""
    return pod(*containers, restartPolicy="Never", **spec)


async def process(command: str) -> int:
    """Wait until a process with this command line runs in a pod of this test. A shell starts it with a delay."""
    async with asyncio.timeout(PATIENCE):
        while not (found := pids(command)):  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.01)
    return found[0]


async def until_ended(command: str) -> None:
    """Wait until no process remains. A killed process can still exist after its exit is reported."""
    async with asyncio.timeout(10):
        while pids(command):  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.01)


def pids(command: str) -> list[int]:
    """Return the processes with this command line in the pods of this test."""
    wanted = command.replace(" ", "\0").encode() + b"\0"
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    ours = [entry for entry in processes if read(entry / "cmdline") == wanted]
    return [int(entry.name) for entry in ours if b"HOSTNAME=web-0" in read(entry / "environ")]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
