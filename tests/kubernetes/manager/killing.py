"""Changes LeaderWorkerSets while their managers are killed, and counts the created leaders.

Each round changes all sets at once: some are rolled, a worker of some fails, some are scaled up and down, and some are
deleted and created again with the same name. A round ends when all are ready. `Births` follows the pods: one leader more
than requested was recreated without a failure, or twice for one.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Final

from testkit.clusters.kubernetes import KubernetesCluster
from tests.integration.clusters import objects
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import Replica, until
from tests.kubernetes.manager.world import LEADER_POLL, InstalledCluster

from kuberuntime.cache.informer import Change, Informer
from kuberuntime.client.requests import Selection
from kuberuntime.clock import SystemClock
from kuberuntime.errors import KubeError
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS, Resource
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

EACH: Final = 5
"""The maximum number of LeaderWorkerSets for each type of change. There are fewer if few managers are killed."""

SIZE: Final = 2
GROUPS: Final = 2
MORE_GROUPS: Final = 3
PATIENCE: Final = 600.0
"""The timeout in seconds of a round in which managers are killed."""

PAUSES: Final = (0.0, 2.0)
"""The minimum and maximum time in seconds between the start of a leader and its termination."""

READY_POLL: Final = 0.5
"""The interval in seconds between two lists of all objects."""

RETRY: Final = 0.5
"""The delay in seconds before a user retries a request because no webhook responded."""

SOON: Final = {labels.RESTART_BACKOFF: "on", labels.RESTART_FIRST_DELAY: "1s", labels.RESTART_LONGEST_DELAY: "1s"}
"""The delays of groups that fail repeatedly, with a short back-off."""


@dataclass
class Births:
    """The UIDs of the leaders of each LeaderWorkerSet, and of the worker StatefulSets of each leader."""

    leaders: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    workers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def note_pod(self, change: Change) -> None:
        """Record a leader."""
        own = meta.labels(change.object)
        if own.get(labels.WORKER_INDEX) == labels.LEADER_WORKER_INDEX:
            self.leaders[own[labels.NAME]].add(meta.uid(change.object))

    def note_statefulset(self, change: Change) -> None:
        """Record the worker StatefulSets of a leader."""
        owner = meta.controller_of(change.object)
        if owner is not None and owner["kind"] == PODS.kind:
            self.workers[owner["uid"]].add(meta.uid(change.object))

    def counts(self) -> dict[str, int]:
        """Return the total number of leaders that were created for each LeaderWorkerSet."""
        return {name: len(uids) for name, uids in sorted(self.leaders.items())}

    def worker_sets(self) -> int:
        """Return the number of worker StatefulSets that were created."""
        return sum(map(len, self.workers.values()))

    def doubled(self) -> list[str]:
        """Return the leaders whose workers were created twice."""
        return [uid for uid, sets in self.workers.items() if len(sets) > 1]


@asynccontextmanager
async def watched(space: CheckedNamespace) -> AsyncIterator[Births]:
    """Record objects that are created in a namespace."""
    births = Births()
    pods = Informer(space.client, Selection(PODS, space.namespace))
    sets = Informer(space.client, Selection(STATEFULSETS, space.namespace))
    pods.subscribe(births.note_pod)
    sets.subscribe(births.note_statefulset)
    tasks = [asyncio.create_task(one.run()) for one in (pods, sets)]
    await asyncio.gather(pods.wait_synced(), sets.wait_synced())
    try:
        yield births
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class Load:
    """Changes to LeaderWorkerSets, and the number of leaders that they create."""

    def __init__(self, space: CheckedNamespace, cluster: KubernetesCluster, each: int) -> None:
        self.space = space
        self.wanted: Counter[str] = Counter()
        self.rounds = 0
        self._failing: set[str] = set()
        self._cluster = cluster
        self._replicas = {f"{what}-{number}": GROUPS for what in self._steps() for number in range(each)}

    async def begin(self) -> None:
        """Create all LeaderWorkerSets."""
        await asyncio.gather(*(self._create(name) for name in self._replicas))
        await self._await_ready()

    async def round(self) -> None:
        """Change each LeaderWorkerSet according to its role, and wait until all LeaderWorkerSets are ready."""
        self.rounds += 1
        steps = self._steps()
        await asyncio.gather(*(steps[name.partition("-")[0]](name) for name in self._replicas))
        await self._await_ready()

    async def state(self) -> dict[str, list[str]]:
        """Return the names of all existing objects by kind. Revisions are counted for each LeaderWorkerSet."""
        kinds: tuple[Resource, ...] = (PODS, STATEFULSETS, SERVICES)
        found = {resource.plural: await self.space.names(resource) for resource in kinds}
        listing = await self.space.client.list(
            CONTROLLER_REVISIONS,
            namespace=self.space.namespace,
            label_selector=f"{labels.TEMPLATE_REVISION_HASH},!controller.kubernetes.io/hash",
        )
        return found | {"revisions": sorted(meta.labels(one)[labels.NAME] for one in listing.items)}

    def expected(self) -> dict[str, list[str]]:
        """Return the expected value of `state` after all changes."""
        leaders = [f"{name}-{group}" for name, replicas in self._replicas.items() for group in range(replicas)]
        workers = [f"{leader}-{rank}" for leader in leaders for rank in range(1, SIZE)]
        return {
            "pods": sorted(leaders + workers),
            "statefulsets": sorted([*self._replicas, *leaders]),
            "services": sorted(self._replicas),
            "revisions": sorted(self._replicas),
        }

    async def images(self) -> dict[str, set[str]]:
        """Return the images of the running pods of each LeaderWorkerSet."""
        found: dict[str, set[str]] = defaultdict(set)
        for pod in (await self.space.client.list(PODS, namespace=self.space.namespace)).items:
            found[meta.labels(pod)[labels.NAME]].add(meta.spec(pod)["containers"][0]["image"])
        return found

    def expected_images(self) -> dict[str, set[str]]:
        """Return the expected value of `images` after all changes."""
        return {name: {self._image(name)} for name in self._replicas}

    def _steps(self) -> dict[str, Callable[[str], Awaitable[None]]]:
        return {"rolled": self._roll, "failed": self._fail, "scaled": self._scale, "replaced": self._replace}

    def _image(self, name: str) -> str:
        return f"app:{self.rounds}" if name.startswith("rolled") else "app:0"

    async def _create(self, name: str) -> None:
        lws = objects.lws(name, replicas=self._replicas[name], size=SIZE, image="app:0", annotations=SOON)
        lws["metadata"]["namespace"] = self.space.namespace
        await insist(lambda: self.space.client.create(LEADERWORKERSETS, lws))
        self.wanted[name] += self._replicas[name]

    async def _roll(self, name: str) -> None:
        """Replace each leader once."""
        template = {"workerTemplate": objects.pod_template(self._image(name))}
        await self._edit(name, {"spec": {"leaderWorkerTemplate": template}})
        self.wanted[name] += self._replicas[name]

    async def _fail(self, name: str) -> None:
        """Replace one leader because one of its workers restarted."""
        key = ObjectKey(self.space.namespace, f"{name}-{self.rounds % GROUPS}-1")
        worker = await self.space.client.get(PODS, key)
        await insist(lambda: self._cluster.restart_container(self.space.client, worker))
        self.wanted[name] += 1
        self._failing.add(meta.uid(worker))

    async def _scale(self, name: str) -> None:
        """Scale up or down by one group."""
        before = self._replicas[name]
        self._replicas[name] = MORE_GROUPS if before == GROUPS else GROUPS
        await self._edit(name, {"spec": {"replicas": self._replicas[name]}})
        self.wanted[name] += max(self._replicas[name] - before, 0)

    async def _replace(self, name: str) -> None:
        """Delete the LeaderWorkerSet, and immediately recreate it with the same name."""
        key = ObjectKey(self.space.namespace, name)
        await insist(lambda: self.space.client.delete(LEADERWORKERSETS, key))
        await self._create(name)

    async def _edit(self, name: str, patch: JSONObject) -> None:
        key = ObjectKey(self.space.namespace, name)
        await insist(lambda: self.space.client.patch(LEADERWORKERSETS, key, patch, kind="merge"))

    async def _await_ready(self) -> None:
        """Wait until all requested objects exist, are ready, and have their revision."""
        try:
            await until(self._is_ready, seconds=PATIENCE, poll=READY_POLL)
        except AssertionError as error:
            error.add_note("\n".join(await self._missing()))
            raise

    async def _is_ready(self) -> bool:
        return not await self._missing()

    async def _missing(self) -> list[str]:
        """Return the objects that differ from the requested state."""
        listing = await self.space.client.list(LEADERWORKERSETS, namespace=self.space.namespace)
        found = {meta.name(lws): lws for lws in listing.items}
        waiting = [
            f"{name}: {meta.status(found[name]) if name in found else 'is not there'}"
            for name, replicas in self._replicas.items()
            if name not in found or not _is_done(found[name], replicas)
        ]
        pods = (await self.space.client.list(PODS, namespace=self.space.namespace)).items
        failed = [f"{meta.name(pod)} failed and is still there" for pod in pods if meta.uid(pod) in self._failing]
        state, expected = await self.state(), self.expected()
        others = [
            f"{kind}: {set(state[kind]) ^ set(expected[kind])}" for kind in expected if state[kind] != expected[kind]
        ]
        return [*waiting, *failed, *others]


def _is_done(lws: JSONObject, replicas: int) -> bool:
    """Return whether the status reports `count` ready groups with this spec, and no other groups."""
    status = meta.status(lws)
    counted = [status.get(field) for field in ("observedGeneration", "readyReplicas", "updatedReplicas")]
    return counted == [meta.generation(lws), replicas, replicas] and meta.is_condition_true(lws, "Available")


async def insist(call: Callable[[], Awaitable[object]]) -> None:
    """Retry in the same way as a user if no webhook responds or a name is not yet available."""
    while True:
        try:
            await call()
        except KubeError:
            await asyncio.sleep(RETRY)
        else:
            return


class Killer:
    """Repeatedly kills the leading manager at random times, and restarts it."""

    def __init__(self, world: InstalledCluster, random: Random) -> None:
        self.moments: list[datetime] = []
        """The time when a manager was killed."""
        self._world = world
        self._random = random

    async def run(self, kills: int) -> None:
        """Kill `count` managers."""
        while len(self.moments) < kills:
            leader = await until(self._leader, *self._world.replicas, poll=LEADER_POLL)
            assert leader is not None
            await asyncio.sleep(self._random.uniform(*PAUSES))
            leader.kill()
            self.moments.append(SystemClock().now())
            leader.start()
            await leader.await_ready()

    async def _leader(self) -> Replica | None:
        for replica in self._world.replicas:
            if await self._world.is_master(replica):
                return replica
        return None
