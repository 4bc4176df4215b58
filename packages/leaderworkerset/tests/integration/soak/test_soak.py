"""Tests that a cluster that runs for days does not retain memory of deleted LeaderWorkerSets."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import structlog
from testkit import virtualtime
from testkit.virtualtime import VirtualClock
from tests.integration.soak import census
from tests.unit.leaderworkerset.controllers.cluster import served_kinds

from kuberuntime.cache import projection
from kuberuntime.cache.informer import Informer
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import EVENTS, NAMESPACES, PODS
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.kinds.managedkinds import MANAGED
from leaderworkerset.manager.controllers import Controllers
from localkube import workloads
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import COMPACT_EVERY, Store
from localkube.assembly import Cluster
from localkube.cluster import Settings
from localkube.controllers.garbage import graph
from localkube.controllers.nodes.nodes import NodeSettings
from localkube.kubelet.node import directoryremoval
from localkube.kubelet.processes import simulatedrunner
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner

pytestmark = pytest.mark.slow

BETWEEN: Final = 240.0
"""The interval between two cycles in seconds. One hour, the lifetime of events, contains 15 cycles."""

WARM: Final = 20
CYCLES: Final = 40
REVISIONS: Final = 500
TOLERATED: Final = CYCLES // 2
"""The permitted growth after the given number of cycles. It is less than one object per cycle."""

BOUNDS: Final = {
    "localkube.controllers.garbage.graph.Graph._deleted": graph.MAX_DELETED,
    "localkube.kubelet.node.directoryremoval.PreviousLogs._retained": directoryremoval.MOST_LOGS,
    "localkube.kubelet.processes.simulatedrunner.SimulatedRunner.signals": simulatedrunner.SIGNALS,
    "kuberuntime.cache.projection.Generations.young": projection.MOST_STRINGS + projection.MOST_PARTS,
    "kuberuntime.cache.projection.Generations._old": projection.MOST_STRINGS + projection.MOST_PARTS,
}
"""Caches that may grow until they are full, and the maximum size of each kind."""


@dataclass
class SoakedCluster:
    """A cluster with all controllers, and the measurements of a test."""

    cluster: Cluster
    sets: Informer
    pods: Informer
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def cycle(self, number: int) -> None:
        """Create one group of two pods in a separate namespace. Delete both after the group is ready."""
        client, key = self.cluster.client("user"), ObjectKey(f"team-{number}", f"web-{number}")
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key.namespace}})
        await client.create(LEADERWORKERSETS, group_of_two(key))
        await self.until(lambda: meta.status(self.sets.store.get(key) or {}).get("readyReplicas") == 1)
        await client.delete(NAMESPACES, ObjectKey("", key.namespace))
        await self.until(lambda: not len(self.sets.store) and not len(self.pods.store))
        await asyncio.sleep(BETWEEN)

    async def until(self, holds: Any) -> None:
        """Wait until a condition is true."""
        async with asyncio.timeout(600):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


def group_of_two(key: ObjectKey) -> JSONObject:
    container = {"name": "main", "image": "none", "command": ["sleep", "3600"]}
    template = {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}, "restartPolicy": "None"}
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, "partition": 0},
    }
    return {
        "apiVersion": LEADERWORKERSETS.api_version,
        "kind": "LeaderWorkerSet",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "replicas": 1,
            "startupPolicy": "LeaderCreated",
            "rolloutStrategy": strategy,
            "leaderWorkerTemplate": template,
            "networkConfig": {"subdomainPolicy": "Shared"},
        },
    }


@asynccontextmanager
async def running(directory: Path, store: Store) -> AsyncIterator[SoakedCluster]:
    clock = VirtualClock()
    api = ApiServer(store, served_kinds(), clock)
    await api.start()
    cluster = Cluster(Settings(name="soak", directory=directory, keep=False), NodeSettings(), api, clock)
    client = cluster.client("tests")
    world = SoakedCluster(cluster, Informer(client, LEADERWORKERSETS), Informer(client, PODS))
    controllers = Controllers(MANAGED, cluster.client("manager"), clock=clock, instance="tests")
    async with workloads.working(cluster, SimulatedRunner()), asyncio.TaskGroup() as group:
        tasks = [group.create_task(controllers.run())]
        for informer in (world.sets, world.pods):
            informer.subscribe(lambda _: world.changed.set())
            tasks.append(group.create_task(informer.run()))
            await informer.wait_synced()
        yield world
        for task in tasks:
            task.cancel()
    await api.close()


def grown(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """Return the attributes that grew and their growth, except attributes within their limits."""
    beyond = {name: after[name] for name, bound in BOUNDS.items() if after[name] > bound}
    more = {name: count for name, count in (after - before).items() if count > TOLERATED and name not in BOUNDS}
    return more | beyond


def rows(store: Store, table: str) -> int:
    """Return the number of rows in a table."""
    return int(store._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.mark.long
def test_memory_is_freed_when_sets_are_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(remembered=REVISIONS)
        async with running(tmp_path, store) as world:
            for number in range(WARM):
                await world.cycle(number)
            held, kinds = census.held(), census.types()
            for number in range(WARM, WARM + CYCLES):
                await world.cycle(number)
            assert grown(kinds, census.types()) == {}
            assert grown(held, census.held()) == {}
            assert rows(store, "history") <= rows(store, "objects") + REVISIONS + COMPACT_EVERY
            assert len((await world.cluster.client("tests").list(EVENTS)).items) < 30 * 20

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    try:
        virtualtime.run(scenario())
    finally:
        structlog.reset_defaults()
    assert [path.name for path in tmp_path.rglob("*") if "web-" in path.name] == []
