"""Runs the embedded cluster for tests: all parts of `lws up`, with simulated pod processes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import STORAGE_CLASSES
from localkube import assembly as embedded
from localkube import workloads
from localkube.cluster import Nodes, Settings
from localkube.controllers.volumes.claims import DEFAULT_CLASS
from localkube.kubelet.processes.runner import ContainerSpec, Exit
from localkube.kubelet.processes.simulatedrunner import Program, SimulatedRunner

from .cluster import (
    CAPACITY,
    NODES,
    NODES_PER_RACK,
    RACK,
    RACKS_PER_ZONE,
    RESTART_ALL,
    START_DELAY,
    ZONE,
    ServedCluster,
    pods_on,
    report_ready,
)

OUTPUT = "TEST_OUTPUT"
"""The environment variable that contains the output of the container."""

CODES: Final = {"true": 0, "false": 1}
"""The exit codes of commands that exit immediately."""

LABELS = (
    f"{RACK}=r{{i//{NODES_PER_RACK}}}",
    f"{ZONE}=z{{i//{NODES_PER_RACK * RACKS_PER_ZONE}}}",
)


class ModeledPods:
    """The `Cluster` actions on pods with simulated processes."""

    runner: SimulatedRunner

    async def await_namespace(self, client: Client, name: str) -> None:
        """Return immediately."""

    async def restart_container(self, client: Client, pod: JSONObject) -> None:
        """Stop the simulated process. The kubelet restarts it."""
        self._end_container(pod, 1)

    async def restart_all(self, client: Client, pod: JSONObject) -> None:
        """Stop the simulated process so that the kubelet restarts all containers of the pod."""
        self._end_container(pod, RESTART_ALL)

    async def complete_container(self, client: Client, pod: JSONObject) -> None:
        """Stop the simulated process. The kubelet restarts it."""
        self._end_container(pod, 0)

    async def end_kept(self, client: Client, pod: JSONObject) -> None:
        """Do nothing, because the kubelet reports the termination."""

    async def end_pod(self, client: Client, pod: JSONObject, code: int) -> None:
        """Stop the simulated process. The kubelet does not restart it."""
        self._end_container(pod, code)

    @asynccontextmanager
    async def hung_node(self, client: Client, name: str, ready: str) -> AsyncIterator[None]:
        """Make the processes on the node ignore all signals, as on a machine with a failed disk."""
        uids = {meta.uid(pod) for pod in await pods_on(client, name)}
        self.runner.hung |= uids
        await report_ready(client, name, ready)
        try:
            yield
        finally:
            self.runner.hung -= uids
            await report_ready(client, name, "True")

    async def provide_volumes(self, client: Client, prefix: str, storage_class: str, count: int) -> None:
        """Create the storage class. The embedded binder creates a directory for each of its claims."""
        default_class = DEFAULT_CLASS | {"metadata": {"name": storage_class}}
        await client.apply(STORAGE_CLASSES, default_class, manager="tests")

    def _end_container(self, pod: JSONObject, code: int) -> None:
        container_id = meta.status(pod)["containerStatuses"][0]["containerID"]
        self.runner.stop_process(container_id.removeprefix("process://"), Exit(code))


@dataclass
class EmbeddedCluster(ServedCluster, ModeledPods):
    """Implements `Cluster` with the simulated cluster."""

    runner: SimulatedRunner = field(kw_only=True)
    name: str = field(default="embedded", init=False)


def program_of(spec: ContainerSpec) -> Program:
    """Run forever after a slow image pull.

    The commands `true` and `false` exit immediately, and init containers run `true`.
    """
    exits = (0.0, Exit(CODES[spec.argv[0]])) if len(spec.argv) == 1 and spec.argv[0] in CODES else None
    delay = float(spec.env.get(START_DELAY, "0s").removesuffix("s"))
    return Program(start_delay=delay, exits=exits, output=spec.env.get(OUTPUT, ""))


def nodes() -> Nodes:
    """Return the node settings."""
    capacity = tuple(f"{resource}={amount}" for resource, amount in CAPACITY.items())
    return Nodes(count=NODES, labels=LABELS, capacity=capacity)


@asynccontextmanager
async def embedded_cluster(directory: Path) -> AsyncIterator[EmbeddedCluster]:
    """Run an embedded cluster with simulated processes."""
    (directory / "mapped" / "bin").mkdir(parents=True)
    images = {"mapped": directory / "mapped"}
    settings = Settings(name="test", directory=directory, keep=False, nodes=nodes(), images=images)
    runner = SimulatedRunner(program_of)
    async with embedded.serving(settings, SystemClock()) as cluster, workloads.working(cluster, runner):
        yield EmbeddedCluster(settings.kubeconfig, runner=runner)
