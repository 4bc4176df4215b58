"""Creates and deletes LeaderWorkerSets a thousand times, and prints memory and file sizes of the cluster.

    python -m bench.cluster soak [--cycles N] [--every N] [--at-once N]

A cycle is: create one group of two ranks (`sleep`), wait until it is ready, delete it, wait until its pods are deleted.
A value that grows after the first hundred cycles is a leak.
"""

import argparse
import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.processes import LWS, memory_mib
from bench.record import report

from kuberuntime.access import kubeconfig
from kuberuntime.cache.informer import Informer
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.client.requests import Selection
from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import EVENTS, PODS
from leaderworkerset.api.resources import LEADERWORKERSETS

NAMESPACE = "default"
LIMIT = 120.0
"""The timeout in seconds for one step of a cycle."""


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
            async with asyncio.timeout(LIMIT):
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


async def soak(directory: Path, options: argparse.Namespace) -> None:
    """Run all cycles, some of them concurrently, and print measurements at regular intervals."""
    pid = int((directory / "lock").read_text())
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


def main() -> None:
    """Start a cluster, run the soak test, and delete the cluster."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"LWS_STATE_HOME": home}
        subprocess.run([*LWS, "up", "bench", "--detach"], env=environment, check=True, capture_output=True)
        try:
            asyncio.run(soak(Path(home) / "bench", options))
        finally:
            subprocess.run([*LWS, "down", "bench", "--delete"], env=environment, check=True, capture_output=True)
