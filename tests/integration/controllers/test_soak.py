"""A cluster that LeaderWorkerSets come to and go from for days keeps nothing of them."""

import asyncio
import gc
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import structlog
from tests.simulation import virtualtime
from tests.simulation.virtualtime import VirtualClock
from tests.unit.leaderworkerset.controllers.cluster import served_kinds

from kuberuntime.cache.informer import Informer
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import EVENTS, PODS
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.kinds.managed import MANAGED
from leaderworkerset.manager.controllers import Controllers
from localkube import workloads
from localkube.apiserver.server import ApiServer
from localkube.apiserver.storage.store import COMPACT_EVERY, Store
from localkube.assembly import Cluster
from localkube.cluster import Settings
from localkube.controllers.garbage.graph import REMEMBERED
from localkube.controllers.nodes.nodes import NodeSettings
from localkube.kubelet.processes.model import ModelRunner

pytestmark = pytest.mark.slow

BETWEEN: Final = 240.0
"""Seconds from one cycle to the next: an hour, the lifetime of events, has 15."""

WARM: Final = 20
CYCLES: Final = 40
TOLERATED: Final = CYCLES // 2
REVISIONS: Final = 500
OURS: Final = ("kuberuntime", "leaderworkerset", "localkube")
"""How much may be there more after so many cycles: less than one thing for each."""

Containers = dict[int, tuple[Any, int]]


@dataclass
class World:
    """A cluster with its controllers and ours, and what a test sees of it."""

    cluster: Cluster
    sets: Informer
    pods: Informer
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def cycle(self, number: int) -> None:
        """Create one group of two, and delete it when it is ready."""
        client, key = self.cluster.client("user"), ObjectKey("default", f"web-{number}")
        await client.create(LEADERWORKERSETS, group_of_two(key.name))
        await self.until(lambda: meta.status(self.sets.store.get(key) or {}).get("readyReplicas") == 1)
        await client.delete(LEADERWORKERSETS, key)
        await self.until(lambda: not len(self.sets.store) and not len(self.pods.store))
        await asyncio.sleep(BETWEEN)

    async def until(self, holds: Any) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(600):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


def group_of_two(name: str) -> JSONObject:
    container = {"name": "main", "image": "none", "command": ["sleep", "3600"]}
    template = {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}, "restartPolicy": "None"}
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, "partition": 0},
    }
    return {
        "apiVersion": LEADERWORKERSETS.api_version,
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "startupPolicy": "LeaderCreated",
            "rolloutStrategy": strategy,
            "leaderWorkerTemplate": template,
            "networkConfig": {"subdomainPolicy": "Shared"},
        },
    }


@asynccontextmanager
async def running(directory: Path, store: Store) -> AsyncIterator[World]:
    clock = VirtualClock()
    api = ApiServer(store, served_kinds(), clock)
    await api.start()
    cluster = Cluster(Settings(name="soak", directory=directory, keep=False), NodeSettings(), api, clock)
    client = cluster.client("tests")
    world = World(cluster, Informer(client, LEADERWORKERSETS), Informer(client, PODS))
    controllers = Controllers(MANAGED.controllers, cluster.client("manager"), clock=clock, instance="tests")
    async with workloads.working(cluster, ModelRunner()), asyncio.TaskGroup() as group:
        tasks = [group.create_task(controllers.run())]
        for informer in (world.sets, world.pods):
            informer.subscribe(lambda _: world.changed.set())
            tasks.append(group.create_task(informer.run()))
            await informer.wait_synced()
        yield world
        for task in tasks:
            task.cancel()
    await api.close()


def containers() -> Containers:
    """Return all that holds things, with the number of things held."""
    gc.collect()
    kinds = (dict, list, set, deque)
    return {id(one): (one, len(one)) for one in gc.get_objects() if isinstance(one, kinds)}


def types() -> Counter[str]:
    """Return how many objects of each type of ours there are."""
    ours = (type(one) for one in gc.get_objects() if type(one).__module__.startswith(OURS))
    return Counter(f"{one.__module__}.{one.__qualname__}" for one in ours)


def grown(before: Containers, after: Containers) -> list[str]:
    """Describe what holds more now, apart from what has a bound that it has not reached."""
    more = [
        (one, length, len(one))
        for key, (one, length) in before.items()
        if key in after and after[key][0] is one and len(one) > length + TOLERATED
    ]
    return [f"{was} -> {now}: {next(iter(one))!r}"[:300] for one, was, now in more if now < REMEMBERED // 100]


def rows(store: Store, table: str) -> int:
    """Count the rows of a table."""
    return int(store._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_memory_does_not_grow_with_what_came_and_went(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(remembered=REVISIONS)
        async with running(tmp_path, store) as world:
            for number in range(WARM):
                await world.cycle(number)
            held, kinds = containers(), types()
            for number in range(WARM, WARM + CYCLES):
                await world.cycle(number)
            more = types() - kinds
            assert {kind: count for kind, count in more.items() if count > TOLERATED} == {}
            assert grown(held, containers()) == []
            assert rows(store, "history") <= rows(store, "objects") + REVISIONS + COMPACT_EVERY
            assert len((await world.cluster.client("tests").list(EVENTS)).items) < 30 * 20

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    try:
        virtualtime.run(scenario())
    finally:
        structlog.reset_defaults()
    assert [path.name for path in tmp_path.rglob("*") if "web-" in path.name] == []
