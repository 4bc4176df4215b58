"""Measures the embedded cluster: many pods, idle usage, memory over time, and DisaggregatedSets.

    python -m bench.cluster groups [--groups N] [--runs N]
    python -m bench.cluster many [--pods N ...] [--size N] [--network isolated|shared] [--probe-every SECONDS]
    python -m bench.cluster idle [--seconds N] [--runs N]
    python -m bench.cluster soak [--cycles N] [--every N] [--at-once N]
    python -m bench.cluster sets [--sets 100] [--seconds 30]

`sets` is described in `bench/cluster_sets.py`.
"""

import argparse
import asyncio
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.processes import (
    MANY,
    SLEEPERS,
    LocalCluster,
    cpu_seconds,
    local_cluster,
    memory_mib,
    peak_memory,
    processes,
    revision,
    wakeups,
)
from bench.record import report, run

from kuberuntime.access import kubeconfig
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import EVENTS, PODS
from leaderworkerset.api.resources import LEADERWORKERSETS

PATIENCE = 1200
PROBE = ", readinessProbe: {{httpGet: {{port: 8000}}, periodSeconds: {}}}"
PROBES_MORE = 6
NAMESPACE = "default"
CYCLE_LIMIT = 120.0
"""The timeout in seconds for one step of a cycle."""


def ready_seconds(cluster: LocalCluster, groups: int, size: int = 4, probe: str = "") -> float:
    """Apply a LeaderWorkerSet, and return the seconds until all groups are ready."""
    start = time.perf_counter()
    cluster.apply(MANY.format(groups=groups, size=size, probe=probe))
    cluster.lws("wait", "many", "--timeout", str(PATIENCE))
    return time.perf_counter() - start


def groups() -> None:
    """Measure the time of 50 groups of 4 stub pods from apply to Ready, and the peak memory of the cluster."""
    parser = argparse.ArgumentParser(description=groups.__doc__)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    for number in range(options.runs):
        with local_cluster("--stub") as cluster:
            seconds = round(ready_seconds(cluster, options.groups), 2)
            memory = round(peak_memory(cluster.pid), 1)
            report("groups", run=number, groups=options.groups, ranks_each=4, seconds=seconds, memory_mib=memory)


def many() -> None:
    """Measure the time to ready, the memory and the CPU time of thousands of stub pods, once for each number.

    With probes, ready pods must still be ready after six more probes each. The machine must allow about eight open
    files (hard limit, `ulimit -Hn`) and one process per pod.
    """
    parser = argparse.ArgumentParser(description=many.__doc__)
    parser.add_argument("--pods", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--network", choices=["isolated", "shared"], default="isolated")
    parser.add_argument("--probe-every", type=int, default=0, metavar="SECONDS")
    options = parser.parse_args()
    suffix = ", shared network" if options.network == "shared" else ""
    suffix += f", probed every {options.probe_every} s" if options.probe_every else ""
    suffix += f", groups of {options.size}" if options.size != 4 else ""  # the name in older lines
    for pods in options.pods:
        with local_cluster("--stub", f"--network={options.network}", f"--max-pods={max(pods, 5000)}") as cluster:
            numbers = measure_many(cluster, pods // options.size, options.size, options.probe_every)
            report(f"{pods} stub pods{suffix}", run=0, pods=pods, network=options.network, **numbers)


def measure_many(cluster: LocalCluster, groups: int, size: int, probe_every: int) -> dict[str, float]:
    """Return the measurements of a cluster after all groups are ready."""
    pid = cluster.pid
    launcher = processes(pid)[1]
    seconds = round(ready_seconds(cluster, groups, size, PROBE.format(probe_every) if probe_every else ""), 1)
    if probe_every:
        time.sleep(PROBES_MORE * probe_every)
        cluster.lws("wait", "many", "--timeout", "0")
    return {
        "seconds": seconds,
        "cluster_cpu_seconds": round(cpu_seconds(pid), 1),
        "launcher_cpu_seconds": round(cpu_seconds(launcher), 1),
        "cluster_memory_mib": round(peak_memory(pid), 1),
        "launcher_memory_mib": round(peak_memory(launcher), 1),
        "cluster_files": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "launcher_files": len(list(Path(f"/proc/{launcher}/fd").iterdir())),
    }


def idle() -> None:
    """Measure the CPU usage, wake-ups and writes of an idle cluster with twenty ready ranks.

    A wake-up is a voluntary context switch of the cluster's process or its launcher, which reveals polling.
    """
    parser = argparse.ArgumentParser(description=idle.__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    for number in range(options.runs):
        with local_cluster() as cluster:
            cluster.apply(SLEEPERS.format(groups=5))
            cluster.lws("wait", "sleepers")
            time.sleep(5)
            version = revision(cluster.home)
            watched = processes(cluster.pid)
            before, woken = sum(map(cpu_seconds, watched)), sum(map(wakeups, watched))
            time.sleep(options.seconds)
            report(
                "idle",
                run=number,
                seconds=options.seconds,
                ranks=20,
                cpu_percent_of_a_core=round(100 * (sum(map(cpu_seconds, watched)) - before) / options.seconds, 2),
                wakeups_per_second=round((sum(map(wakeups, watched)) - woken) / options.seconds, 2),
                writes=revision(cluster.home) - version,
            )


def soak() -> None:
    """Create and delete LeaderWorkerSets a thousand times, and measure memory and file sizes.

    A cycle is: create one group of two ranks (`sleep`), wait until it is ready, delete it, and wait until its pods are
    deleted. A value that grows after the first hundred cycles is a leak.
    """
    parser = argparse.ArgumentParser(description=soak.__doc__)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    with local_cluster() as cluster:
        asyncio.run(run_cycles(cluster, options))


class Caches:
    """The current objects, with a function that waits for a change."""

    def __init__(self, client: Client) -> None:
        self.sets = Informer(client, LEADERWORKERSETS)
        self.pods = Informer(client, PODS)
        self._waiting: set[asyncio.Event] = set()
        for informer in (self.sets, self.pods):
            informer.subscribe(lambda _: self._wake())

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        changed = asyncio.Event()
        self._waiting.add(changed)
        try:
            async with asyncio.timeout(CYCLE_LIMIT):
                while not holds():
                    changed.clear()
                    await changed.wait()
        finally:
            self._waiting.discard(changed)


def group_of_two(name: str) -> dict[str, Any]:
    """Return a LeaderWorkerSet."""
    container = {"name": "main", "image": "none", "command": ["sleep", "3600"]}
    template = {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": LEADERWORKERSETS.api_version,
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": 1, "leaderWorkerTemplate": template},
    }


async def cycle(client: Client, caches: Caches, name: str) -> None:
    """Create one LeaderWorkerSet, and delete it."""
    key = ObjectKey(NAMESPACE, name)
    await client.create(LEADERWORKERSETS, group_of_two(name))
    await caches.until(lambda: meta.status(caches.sets.store.get(key) or {}).get("readyReplicas") == 1)
    await client.delete(LEADERWORKERSETS, key)
    await caches.until(
        lambda: (
            caches.sets.store.get(key) is None
            and not any(meta.name(pod).startswith(f"{name}-") for pod in caches.pods.store.list())
        )
    )


async def count(client: Client) -> int:
    """Return the number of events, page by page, because a complete list would increase the cluster's memory."""
    total, page = 0, await client.list_page(Selection(EVENTS), limit=100)
    while page.token:
        total += len(page.items)
        page = await client.list_page(Selection(EVENTS), limit=100, token=page.token)
    return total + len(page.items)


def file_mib(path: Path) -> float:
    """Return the size of a file, or 0 if it does not exist."""
    return round(path.stat().st_size / 2**20, 1) if path.exists() else 0.0


async def run_cycles(cluster: LocalCluster, options: argparse.Namespace) -> None:
    """Run all cycles, some of them concurrently, and print measurements at regular intervals."""
    pid, directory = cluster.pid, cluster.directory
    client = Client(HTTPTransport(kubeconfig.load({}, kubeconfig=str(directory / "kubeconfig")), user_agent="bench/1"))
    caches = Caches(client)
    names = iter(range(options.cycles))
    done, began = 0, time.perf_counter()

    async def work() -> None:
        nonlocal done
        for number in names:
            await cycle(client, caches, f"soak-{number}")
            done += 1
            if done % options.every == 0:
                numbers = {
                    "memory_mib": memory_mib(pid),
                    "events": await count(client),
                    "database_mib": file_mib(directory / "state.db"),
                    "log_mib": file_mib(directory / "state.db-wal"),
                }
                report("soak", cycles=done, seconds=round(time.perf_counter() - began, 1), **numbers)

    async with asyncio.TaskGroup() as group:
        watching = [group.create_task(informer.run()) for informer in (caches.sets, caches.pods)]
        for informer in (caches.sets, caches.pods):
            await informer.wait_synced()
        await asyncio.gather(*(work() for _ in range(options.at_once)))
        for task in watching:
            task.cancel()
    await client.close()


def sets() -> None:
    """Measure the writes and the CPU time per DisaggregatedSet, and the writes when idle."""
    import_module("bench.cluster_sets").main()


BENCHMARKS = {work.__name__: work for work in (groups, many, idle, soak, sets)}

if __name__ == "__main__":
    run("cluster", BENCHMARKS)
