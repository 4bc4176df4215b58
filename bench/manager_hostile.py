"""Measures the effect of a tenant with hundreds of thousands of objects on another tenant of the manager.

    python -m bench.manager hostile [--objects 200000] [--seconds S]

The manager is a process, started as in its Deployment; the API server is the embedded one, without controllers. Hostile
objects (`packages/leaderworkerset/tests/hostile.py`) are stored unchanged, so the watches also send objects that a
webhook would deny, but none that this API server cannot decode. Each is changed once and deleted; a thousand are there
at once. The other tenant creates LeaderWorkerSets, one after the other: for each it waits for the first write of the
manager, and until an edit of it and a pod that belongs to no group are answered, which needs every watch of these
kinds. The benchmark prints one JSON line for each phase:

    alone       without the hostile tenant
    attack      while hostile objects are created and deleted. The memory is measured after their deletion.
    keys_due    while two DisaggregatedSets of a thousand LeaderWorkerSets each are reconciled, for two minutes at most
    end         after their deletion. Scalers and DisaggregatedSets are still watched.

The benchmark fails with an error if the process ended or a watch is silent. It exits with code 1 if memory after the
attack is above 1.5 times the memory of the first phase. It also exits with code 1 if the time from a creation to the
first write during the due keys is above 2 s (p99). On a busy machine, compare the processor time of both processes,
which is printed as work.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import structlog
from bench.apiserver import percentile
from bench.processes import cpu_seconds
from bench.record import machine, report
from testkit.clusters.embedded import EmbeddedCluster
from tests import hostile
from tests.disaggregated import disaggregatedset_object, role
from tests.integration.clusters import objects
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.replicas import Replica

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import (
    CONTROLLER_REVISIONS,
    EVENTS,
    NAMESPACES,
    PODS,
    SERVICES,
    STATEFULSETS,
    Resource,
)
from leaderworkerset.api import labels
from leaderworkerset.api.resources import DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS
from localkube.apiserver.storage.store import Store, StoreKey
from localkube.assembly import Cluster, serving
from localkube.clustersettings import Settings
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner, run_forever

USUAL_ELECTION: Final = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
ALONE: Final = 60.0
"""The time in seconds for which only the other tenant creates objects."""

WAVE, TURN = 1000, 100
"""The maximum number of existing objects, and of objects per loop iteration, which also serves the watches."""

PATIENCE: Final = 600.0
"""The timeout in seconds for each condition, after which a watch is considered stalled."""

ROLES, SLICES = 10, 100
"""The sizes of a DisaggregatedSet with a thousand LeaderWorkerSets."""

BUSY: Final = 120.0
"""The maximum time in seconds for which due keys are observed."""

GROWTH, FIRST_WRITE = 1.5, 2.0
"""The limits for memory after the attack, relative to the start, and for the p99 time to the first write.

The time is in seconds.
"""

OWNED: Final = (STATEFULSETS, SERVICES, CONTROLLER_REVISIONS, PODS, EVENTS)
"""The remaining objects of a LeaderWorkerSet without a garbage collector."""


class Changes:
    """Waits for changes to the store. `until(holds)` rechecks the condition after each change."""

    def __init__(self, store: Store) -> None:
        self._changed = asyncio.Event()
        store.subscribe(lambda _: self._changed.set())

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition is true."""
        async with asyncio.timeout(PATIENCE):
            self._changed.clear()
            while not await holds():
                await self._changed.wait()
                self._changed.clear()


@dataclass
class Victim:
    """The other tenant, with the seconds until the first write for each of its LeaderWorkerSets, and their work.

    Work is the processor time of both processes, one after the other: on a busy machine the seconds also include other
    programs.
    """

    client: Client
    store: Store
    changes: Changes
    manager: Replica
    namespace: str = "victim"
    waited: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    rounds: int = 0

    async def meanwhile(self, work: Awaitable[Any]) -> dict[str, Any]:
        """Create LeaderWorkerSets sequentially during some work, and return its result."""
        self.waited, self.worked = [], []
        task = asyncio.ensure_future(work)
        while not task.done():
            await self.create()
        await task
        shares = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        waited = {f"first_write_{name}_ms": percentile(self.waited, share) for name, share in shares.items()}
        worked = {f"work_{name}_ms": percentile(self.worked, share) for name, share in shares.items()}
        return {"first_writes": len(self.waited), **waited, **worked}

    async def create(self) -> None:
        """Create a LeaderWorkerSet, edit it, create a pod without a label, and wait for all reactions."""
        self.rounds += 1
        key = ObjectKey(self.namespace, f"web-{self.rounds}")
        start, work = time.monotonic(), self._work()
        await self.client.create(LEADERWORKERSETS, self._lws(key))
        await self.changes.until(lambda: self._exists(STATEFULSETS, key.name))
        self.waited.append(time.monotonic() - start)
        self.worked.append(self._work() - work)
        await self.changes.until(lambda: self._is_observed(key))
        template = {"workerTemplate": objects.pod_template("app:2")}
        await self.client.patch(LEADERWORKERSETS, key, {"spec": {"leaderWorkerTemplate": template}}, kind="merge")
        await report_stray(self.client, self.store, self.changes, self.namespace)
        await self.changes.until(lambda: self._is_observed(key))
        await clear(self.client, self.namespace)

    def _work(self) -> float:
        return time.process_time() + cpu_seconds(self.manager.process.pid)

    def _lws(self, key: ObjectKey) -> JSONObject:
        lws = objects.lws(key.name, replicas=0, size=1)
        return lws | {"metadata": lws["metadata"] | {"namespace": key.namespace}}

    async def _exists(self, resource: Resource, name: str) -> bool:
        return self.store.get(StoreKey(resource.group_resource, self.namespace, name)) is not None

    async def _is_observed(self, key: ObjectKey) -> bool:
        lws = self.store.get(StoreKey(LEADERWORKERSETS.group_resource, *key))
        return lws is not None and meta.status(lws).get("observedGeneration") == meta.generation(lws)


async def report_stray(client: Client, store: Store, changes: Changes, namespace: str) -> None:
    """Store a pod that cannot belong to a group, and wait for the manager's event, which follows all known pods."""
    stray = put(store, PODS, {"metadata": {"name": "stray", "namespace": namespace, "labels": {labels.NAME: "none"}}})

    async def is_reported() -> bool:
        events = (await client.list(EVENTS, namespace=namespace)).items
        return any(event["regarding"].get("uid") == meta.uid(stray) for event in events)

    await changes.until(is_reported)
    drop(store, PODS, stray)


async def clear(client: Client, namespace: str) -> None:
    """Delete all objects of a namespace."""
    for resource in (DISAGGREGATED_SETS, LEADERWORKERSETS, ROLE_SCALERS, *OWNED):
        await client.delete_collection(resource, namespace)


def put(store: Store, resource: Resource, obj: JSONObject) -> JSONObject:
    """Store an object in the same way as an API server, but without validation."""
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    added = {"uid": f"uid-{store.revision}", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    stored = identity | obj | {"metadata": meta.metadata(obj) | added}
    return store.create(StoreKey(resource.group_resource, meta.namespace(obj), meta.name(obj)), stored)


async def flood(
    client: Client, store: Store, changes: Changes, attack: argparse.Namespace, stored: Counter[str]
) -> None:
    """Store `attack.objects` hostile objects within a timeout. Each is changed, and deleted after 1,000 others.

    The manager's watch of pods is at most two thousand objects behind, as API servers end watches that lag too far
    behind.
    """
    chance = Random(1)
    live_objects: list[tuple[Resource, JSONObject]] = []
    behind = asyncio.create_task(asyncio.sleep(0))
    start = time.monotonic()
    for number in range(attack.objects):
        if time.monotonic() > start + attack.seconds:
            break
        resource, obj = hostile.plain(chance, "hostile", number)
        live_objects.append((resource, change(chance, store, resource, put(store, resource, obj))))
        stored[resource.plural] += 1
        if len(live_objects) > WAVE:
            drop(store, *live_objects.pop(chance.randrange(WAVE)))
        if number % TURN == 0:
            await asyncio.sleep(0)
        if number % WAVE == 0:
            await behind
            behind = asyncio.create_task(report_stray(client, store, changes, "pace"))
            print(number, flush=True, file=sys.stderr)
    await behind
    for resource, obj in live_objects:
        drop(store, resource, obj)


def change(chance: Random, store: Store, resource: Resource, obj: JSONObject) -> JSONObject:
    """Change the status or labels of an object, or start a deletion that does not complete."""
    match chance.choice(("status", "labels", "terminated")):
        case "status":
            changed = obj | {"status": hostile.status(chance, resource)}
        case "labels":
            marks = hostile.disguise(chance, meta.namespace(obj))
            changed = obj | {"metadata": meta.metadata(obj) | {"labels": meta.labels(obj) | marks["labels"]}}
        case _:
            ended = {
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": chance.choice([0, 2**62]),
            }
            changed = obj | {"metadata": meta.metadata(obj) | ended}
    return store.update(key_of(resource, obj), changed, obj)


def drop(store: Store, resource: Resource, obj: JSONObject) -> None:
    """Delete an object."""
    store.delete(key_of(resource, obj), obj)


def key_of(resource: Resource, obj: JSONObject) -> StoreKey:
    """Return the store key of an object."""
    return StoreKey(resource.group_resource, meta.namespace(obj), meta.name(obj))


async def make_keys_due(client: Client, store: Store, due: list[int]) -> None:
    """Create a few objects that cause the creation of many objects. Print the unreconciled objects each second."""
    for name in ("many-0", "many-1"):
        disaggregatedset = disaggregatedset_object([role(f"r{index}", 0) for index in range(ROLES)], slices=SLICES)
        await client.create(DISAGGREGATED_SETS, disaggregatedset | {"metadata": {"name": name, "namespace": "hostile"}})
    count, start = 0, time.monotonic()
    while (count < 2 * ROLES * SLICES or due[-1]) and time.monotonic() < start + BUSY:
        await asyncio.sleep(1)
        sets = [msgspec.json.decode(row) for row in store.list(LEADERWORKERSETS.group_resource, "hostile")]
        count = len(sets)
        due.append(sum("observedGeneration" not in meta.status(lws) for lws in sets))


async def scale_by_scaler(client: Client, changes: Changes) -> None:
    """Create a DisaggregatedSet with a scaler, and scale it.

    Wait for its role, which proves that both are watched.
    """
    disaggregatedset = disaggregatedset_object([role("decode", None, external=True), role("prefill", 0)])
    await client.create(DISAGGREGATED_SETS, disaggregatedset | {"metadata": {"name": "last", "namespace": "victim"}})

    async def is_scaled() -> bool:
        for scaler in (await client.list(ROLE_SCALERS, namespace="victim")).items:
            if meta.spec(scaler).get("replicas") != 2:
                patch: JSONObject = {"spec": {"replicas": 2}}
                await client.patch(ROLE_SCALERS, meta.key(scaler), patch, kind="merge", subresource="scale")
        sets = (await client.list(LEADERWORKERSETS, namespace="victim")).items
        return any(meta.spec(lws).get("replicas") == 2 for lws in sets)

    await changes.until(is_scaled)


async def measure(cluster: Cluster, manager: Replica, attack: argparse.Namespace) -> bool:
    """Measure all phases. Return whether the numbers are within their limits."""
    client, store = cluster.client("tenant"), cluster.api.backend.store
    changes = Changes(store)
    for namespace in ("victim", "hostile", "pace"):
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    victim = Victim(client, store, changes, manager)
    waited = await victim.meanwhile(asyncio.sleep(ALONE))
    before = manager.resident_mebibytes()
    report("alone", **waited, memory_mib=round(before, 1))

    start, stored = time.monotonic(), Counter[str]()
    waited = await victim.meanwhile(flood(client, store, changes, attack, stored))
    await scale_by_scaler(client, changes)
    await victim.create()
    after = manager.resident_mebibytes()
    report(
        "attack",
        **waited,
        seconds=round(time.monotonic() - start),
        objects=stored.total(),
        stored=stored,
        named_as_ignored=manager.log.read_text().count("object ignored"),
        memory_mib=round(after, 1),
    )

    due: list[int] = []
    busy = await victim.meanwhile(make_keys_due(client, store, due))
    report("keys_due", **busy, seconds=len(due), most_due=max(due), memory_mib=round(manager.resident_mebibytes(), 1))
    await clear(client, "hostile")

    await scale_by_scaler(client, changes)
    await victim.create()
    manager.check()
    memory = round(manager.resident_mebibytes(), 1)
    report("end", exits=0, stalled_watches=0, errors_logged=len(manager.failures()), memory_mib=memory)
    return after <= GROWTH * before and busy["first_write_p99_ms"] <= 1000 * FIRST_WRITE


async def run(directory: Path, attack: argparse.Namespace) -> bool:
    """Serve, run the manager, and measure."""
    settings = Settings(name="bench", directory=directory, keep=False)
    replica = Replica(directory, "manager", directory / "manager.kubeconfig", {"leaderElection": USUAL_ELECTION})
    async with serving(settings, SystemClock()) as cluster:
        reached = EmbeddedCluster(settings.kubeconfig, runner=SimulatedRunner(run_forever))
        async with deployed(reached, replica):
            return await measure(cluster, replica, attack)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=inf, help="of the attack, at most")
    options = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine()), flush=True)
    with tempfile.TemporaryDirectory() as name:
        sys.exit(not asyncio.run(run(Path(name), options)))
