"""Measures the cost of a number of LeaderWorkerSets in `bench.scale`, and projects the cost of more LeaderWorkerSets."""

import argparse
import asyncio
import math
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import msgspec
from bench.phases import POLL, SETTLE, Bench, in_turn
from bench.processes import cpu_seconds, memory_mib
from tests.controlplane.process import Plane
from tests.kubernetes.manager.groups import counter
from tests.kubernetes.manager.replicas import until

from kuberuntime.client import lines
from kuberuntime.client.client import Client
from kuberuntime.objects import meta

GROUPS: Final = 4
SIZE: Final = 8
COMPONENTS: Final = ("kube-apiserver", "etcd", "kube-controller-manager")
SELECTION: Final = ("labelSelector", "fieldSelector")


async def capacity(bench: Bench, options: argparse.Namespace) -> None:
    """Create LeaderWorkerSets of 4 groups of 8 pods. Then kill the manager, and start it with all objects."""
    count, plane = options.sets, bench.world.plane
    sizes = {"sets": count, "pods": GROUPS * SIZE * count, "nodes": options.nodes}
    async with watching(bench) as received, bench.phase(f"capacity: {count} sets created", **sizes) as line:
        used, start = cpu_of(plane), time.monotonic()
        names = [f"web-{index}" for index in range(count)]
        await in_turn(names, lambda name: bench.create(name, GROUPS, SIZE))
        for name in names:
            await bench.wait_until_complete(name, GROUPS)
        line["seconds"] = round(time.monotonic() - start, 2)
        await asyncio.sleep(SETTLE)
        line |= {"events": received.total(), "events_by_path": dict(received)}
        line |= {f"{name}_cpu_seconds": round(now - used[name], 1) for name, now in cpu_of(plane).items()}
        line |= {f"{name}_mebibytes": memory_mib(plane.processes[name].pid) for name in COMPONENTS}
    if not bench.world.replicas:
        return  # only managers of this project report their queues
    async with bench.phase(f"capacity: {count} sets, manager restarted", **sizes) as line:
        start = time.monotonic()
        await bench.restart(0)
        line["listed_seconds"] = round(time.monotonic() - start, 2)
        await until(lambda: has_reconciled(bench, count), *bench.world.replicas, seconds=600, poll=POLL)
        line["seconds"] = round(time.monotonic() - start, 2)


@asynccontextmanager
async def watching(bench: Bench) -> AsyncIterator[Counter[str]]:
    """Count the events of watches with the selectors of the manager, by path, while the context is active."""
    received: Counter[str] = Counter()
    uris = [urlsplit(event["requestURI"]) for event in bench.world.audit.events() if event["verb"] == "watch"]
    selections = {(uri.path, tuple(pair for pair in parse_qsl(uri.query) if pair[0] in SELECTION)) for uri in uris}
    async with asyncio.TaskGroup() as tasks:
        counters = [
            tasks.create_task(count_events(bench.space.client, *parts, received)) for parts in sorted(selections)
        ]
        await asyncio.sleep(SETTLE)  # these watches first send the existing objects
        received.clear()
        yield received
        for task in counters:
            task.cancel()


async def count_events(client: Client, path: str, query: tuple[tuple[str, str], ...], received: Counter[str]) -> None:
    """Count the events of a watch. The API server closes it if this process is slow, so it continues afterwards."""
    version = ""
    while True:
        selection = (("watch", "true"), ("resourceVersion", version), *query)
        async with client.stream("GET", path, selection) as response:
            async for batch in lines.split(response.chunks):
                received[path] += len(batch)
                version = meta.resource_version(msgspec.json.decode(batch[-1])["object"])


async def has_reconciled(bench: Bench, sets: int) -> bool:
    """Return whether the queues of the manager are empty after it reconciled at least as many objects."""
    _, text = await bench.world.replicas[-1].metrics_with(bench.world.scraper)
    is_idle = not (counter(text, "workqueue_depth") + counter(text, "controller_runtime_active_workers")).total()
    return is_idle and counter(text, "controller_runtime_reconcile_total").total() >= sets


def cpu_of(plane: Plane) -> Mapping[str, float]:
    """Return the CPU time of each component of the control plane."""
    return {name: cpu_seconds(plane.processes[name].pid) for name in COMPONENTS}


def project(points: Mapping[int, float], size: int) -> tuple[float, float]:
    """Return the value of the least-squares line through at least three points at a size, and its standard error."""
    slope, intercept = _fit(points)
    residuals = [value - intercept - slope * point for point, value in points.items()]
    deviation = math.sqrt(sum(residual**2 for residual in residuals) / (len(points) - 2))
    mean = statistics.fmean(points)
    distance = (size - mean) ** 2 / sum((point - mean) ** 2 for point in points)
    return intercept + slope * size, deviation * math.sqrt(1 + 1 / len(points) + distance)


def deviation_of_largest(points: Mapping[int, float]) -> float:
    """Return the relative error of the largest point if it is predicted from the smaller points."""
    largest = max(points)
    smaller = {point: value for point, value in points.items() if point != largest}
    slope, intercept = _fit(smaller)
    return (intercept + slope * largest) / points[largest] - 1


def _fit(points: Mapping[int, float]) -> tuple[float, float]:
    """Return the slope and the intercept of the least-squares line."""
    slope, intercept = statistics.linear_regression([*points], [*points.values()])
    return slope, intercept
