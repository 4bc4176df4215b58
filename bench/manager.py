"""Measures `lws manager`: memory, writes at rest, a lost lease, a hostile tenant, and function calls.

    python -m bench.manager memory [--pods 0 400 10000] [--source NAME=DIRECTORY ...] [--environment NAME=VALUE ...]
    python -m bench.manager rest [--pods 5000] [--seconds 300]
    python -m bench.manager fencing [--rounds 200] [--qps 5 --qps 500]
    python -m bench.manager hostile [--objects 200000] [--seconds S]
    python -m bench.manager calls

Each prints the properties of the machine and one JSON line per measurement. `rest` and `fencing` need the binaries of
`tests/controlplane`. `hostile` is described in `bench/manager_hostile.py`, and `calls` in `bench/manager_calls.py`.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import structlog
from bench.phases import SETTLE, USUAL_ELECTION
from bench.record import machine, report, run
from testkit.clusters.embedded import EmbeddedCluster
from testkit.clusters.kubernetes import KubernetesCluster
from testkit.repository import ROOT
from tests.controlplane import build
from tests.controlplane.audit import WRITES, Audit
from tests.controlplane.process import Plane, control_plane
from tests.integration.clusters import objects
from tests.integration.clusters.managed import set_up
from tests.kubernetes.manager import fencing as interruptions
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.installation import ACCOUNT
from tests.kubernetes.manager.replicas import Replica, until
from tests.kubernetes.manager.world import InstalledCluster, opened

from kuberuntime.client.client import Client
from kuberuntime.clock import SystemClock
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import CONTROLLER_REVISIONS, PODS, SERVICES, STATEFULSETS, Resource
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.manager import lwsmanager
from localkube import workloads
from localkube.apiserver.storage.store import Store, StoreKey
from localkube.assembly import Cluster, serving
from localkube.clustersettings import Settings
from localkube.kubelet.processes.simulatedrunner import SimulatedRunner, run_forever

OWN: Final = {"installed": ROOT}
KINDS: Final = (LEADERWORKERSETS, STATEFULSETS, PODS, SERVICES, CONTROLLER_REVISIONS)
NAME: Final = "webseed"
STORED_SIZE: Final = 5
UNTIL_IDLE: Final = 30.0
UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MEASURED: Final = ("Rss", "Pss", "Anonymous")

GROUPS: Final = 100
SIZE: Final = 4
AT_ONCE: Final = 32
USUAL_QPS: Final = 500


def memory() -> None:
    """Measure the memory of a starting manager with stored pods, on the embedded API server.

    The LeaderWorkerSets are copies of a ready set of one group of five pods. Only the controllers of the manager run.
    Each line contains the MiB of the process by `smaps_rollup`, half a minute after it is ready. `--source` compares
    source trees, and `--environment` sets variables of the process. Each line needs about a minute.
    """
    parser = argparse.ArgumentParser(description=memory.__doc__)
    parser.add_argument("--pods", type=int, nargs="+", default=[0, 400, 10_000])
    parser.add_argument("--source", action="append", default=[], metavar="NAME=DIRECTORY")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    sources = {name: Path(path).resolve() for name, _, path in (text.partition("=") for text in options.source)} or OWN
    environment = dict(text.split("=", 1) for text in options.environment)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine()), flush=True)
    seed = asyncio.run(in_directory(grow))
    for pods in options.pods:
        for source, tree in sources.items():
            work = partial(measure_memory, seed=seed, pods=pods, tree=tree, environment=environment)
            numbers = asyncio.run(in_directory(work))
            report("kept", server=source, pods=pods, environment=environment, **numbers)


async def in_directory(work: Any) -> Any:
    """Return the result of some work in a temporary directory."""
    with tempfile.TemporaryDirectory() as name:
        return await work(Path(name))


def python_path(tree: Path) -> str:
    """Return the PYTHONPATH for a source tree, which is a workspace or an older tree with one `src`."""
    return ":".join(map(str, [*tree.glob("packages/*/src"), tree / "src"]))


async def grow(directory: Path) -> str:
    """Return the objects of a ready LeaderWorkerSet and their plurals, as JSON."""
    clock = SystemClock()
    settings = Settings(name="seed", directory=directory, keep=False)
    async with serving(settings, clock) as cluster, workloads.working(cluster, SimulatedRunner(run_forever)):
        client, key = cluster.client("seed"), ObjectKey("default", NAME)
        async with lwsmanager.webhooks(client, clock), lwsmanager.controllers(client, clock):
            lws = objects.lws(NAME, replicas=1, size=STORED_SIZE)
            await client.create(LEADERWORKERSETS, lws | {"metadata": lws["metadata"] | {"namespace": "default"}})
            await until(lambda: is_ready(client, key))
            return json.dumps([(resource.plural, obj) for resource in KINDS for obj in stored(cluster, resource)])


async def is_ready(client: Client, key: ObjectKey) -> bool:
    """Return whether the group is ready."""
    return meta.status(await client.get(LEADERWORKERSETS, key)).get("readyReplicas") == 1


def stored(cluster: Cluster, resource: Resource) -> Iterable[JSONObject]:
    """Yield the objects of the LeaderWorkerSet."""
    decoded = (msgspec.json.decode(row) for row in cluster.api.backend.store.list(resource.group_resource, "default"))
    return (obj for obj in decoded if meta.name(obj).startswith(NAME))


def copy(store: Store, seed: str, count: int) -> None:
    """Store `count` copies, each with separate names and UIDs."""
    chance, resources = Random(1), {resource.plural: resource for resource in KINDS}
    for index in range(count):
        text = seed.replace(NAME, f"web-{index}")
        for uid in sorted(set(UID.findall(seed))):
            text = text.replace(uid, str(uuid.UUID(int=chance.getrandbits(128))))
        for plural, obj in json.loads(text):
            store.create(StoreKey(resources[plural].group_resource, "default", meta.name(obj)), obj)


async def measure_memory(
    directory: Path, *, seed: str, pods: int, tree: Path, environment: Mapping[str, str]
) -> dict[str, float]:
    """Return the memory of a manager that starts with `pods` stored pods."""
    settings = Settings(name="bench", directory=directory, keep=False)
    replica = Replica(directory, "manager", settings.kubeconfig, {"leaderElection": USUAL_ELECTION})
    replica.environment = {"PYTHONPATH": python_path(tree), **environment}
    replica.program = ("-Bu", str(tree / "deploy" / "manager"))  # -I would ignore PYTHONPATH
    reached = EmbeddedCluster(settings.kubeconfig, runner=SimulatedRunner(run_forever))
    async with serving(settings, SystemClock()) as cluster, deployed(reached, replica) as manager:
        await manager.stop()
        copy(cluster.api.backend.store, seed, pods // STORED_SIZE)
        await manager.start()
        await asyncio.sleep(UNTIL_IDLE)
        return memory_of(replica.process.pid)


def memory_of(pid: int) -> dict[str, float]:
    """Return the memory of a process, in MiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kibibytes = {name: re.findall(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)[0] for name in MEASURED}
    return {f"{name.lower()}_mebibytes": round(int(kib) / 1024, 1) for name, kib in kibibytes.items()}


def rest() -> None:
    """Measure the memory and the idle writes of the manager on a real control plane, with pods of other owners.

    `memory_alone` and `memory_beside` are MiB of the leading manager without pods and with many unrelated ones.
    `at_rest` counts its requests in the audit log for some minutes, with a hundred LeaderWorkerSets (400 pods).
    """
    parser = argparse.ArgumentParser(description=rest.__doc__)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    on_control_plane(lambda plane, directory: measure_rest(plane, directory, options.pods, options.seconds))


def on_control_plane(measure: Callable[[Plane, Path], Coroutine[Any, Any, Any]]) -> Any:
    """Start a control plane with an audit log, and return the result of a measurement."""
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine()), flush=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with control_plane(assets, directory, flags=Audit(directory).flags(ACCOUNT)) as plane:
            asyncio.run(set_up(KubernetesCluster(plane.kubeconfig)))
            return asyncio.run(measure(plane, directory))


async def measure_rest(plane: Plane, directory: Path, pods: int, seconds: float) -> None:
    async with opened(plane, directory) as world:
        alone = await resident(world, "alone")
        report("memory_alone", mebibytes=alone)
        await create_strangers(world.client, pods)
        beside = await resident(world, "beside")
        report("memory_beside", mebibytes=beside, pods=pods, more=round(beside - alone, 1))
        await at_rest(world, seconds)


async def resident(world: InstalledCluster, name: str) -> float:
    """Start a manager, wait until it is the leader, and return its memory when it is idle."""
    for replica in world.replicas:
        replica.end()
    world.replicas.clear()
    world.balancer.backends.clear()
    replica = await world.start(name, leaderElection=USUAL_ELECTION)
    await world.await_master(replica)
    await asyncio.sleep(SETTLE)
    return round(replica.resident_mebibytes(), 1)


async def at_rest(world: InstalledCluster, seconds: float) -> None:
    space = CheckedNamespace(world.client, "at-rest")
    await space.open()
    for index in range(GROUPS):
        await space.create_groups(f"web-{index}", replicas=1, size=SIZE)
    for index in range(GROUPS):
        await space.await_ready(f"web-{index}", 1)
    await world.rest()
    mark, versions = world.audit.mark(), await space.versions()
    await asyncio.sleep(seconds)
    report(
        "at_rest",
        seconds=seconds,
        leaderworkersets=GROUPS,
        writes=sum(world.writes(mark).values()),
        lease_renewals=world.renewals(mark),
        reads=len({event["auditID"] for event in world.audit.events(mark) if event["verb"] not in WRITES}),
        objects_changed=len(set((await space.versions()).items()) ^ set(versions.items())),
        mebibytes=round(world.replicas[0].resident_mebibytes(), 1),
    )


async def create_strangers(client: Client, count: int) -> None:
    space = CheckedNamespace(client, "strangers")
    await space.open()
    gate = asyncio.Semaphore(AT_ONCE)

    async def create(index: int) -> None:
        async with gate:
            await client.create(PODS, stranger(index))

    async with asyncio.TaskGroup() as group:
        for index in range(count):
            group.create_task(create(index))


def stranger(index: int) -> JSONObject:
    """Return a pod with a different owner and many annotations, like real pods."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "strangers",
            "name": f"pod-{index}",
            "labels": {"app": "other"},
            "annotations": {"example.com/notes": "x" * 2000},
        },
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "main", "image": "app:1", "command": ["sleep", "infinity"]}],
        },
    }


def fencing() -> None:
    """Check in the audit log of a real API server whether a paused leader writes after a leader change.

    The leader is stopped (SIGSTOP) while it has writes to send, and resumed (SIGCONT) once another one leads. `late`
    must be 0.
    """
    parser = argparse.ArgumentParser(description=fencing.__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--qps", type=int, action="append")
    options = parser.parse_args()

    async def measure(plane: Plane, directory: Path) -> int:
        rates = options.qps or (5, USUAL_QPS)
        return sum([await late_writes(plane, directory, options.rounds, qps) for qps in rates])

    sys.exit(1 if on_control_plane(measure) else 0)


async def late_writes(plane: Plane, directory: Path, rounds: int, qps: int) -> int:
    """Return the number of late writes."""
    async with opened(plane, directory) as world:
        counts = await interruptions.rounds(world, count=rounds, client={"qps": qps, "burst": qps})
    for text in counts.late:
        print(text, file=sys.stderr)
    report("fencing", qps=qps, rounds=rounds, writes=counts.writes, late=len(counts.late))
    return len(counts.late)


def hostile() -> None:
    """Measure the effect of a tenant with hundreds of thousands of objects on another tenant of the manager."""
    import_module("bench.manager_hostile").main()


def calls() -> None:
    """Count the function calls of the manager for one event, request or review."""
    import_module("bench.manager_calls").main()


BENCHMARKS = {work.__name__: work for work in (memory, rest, fencing, hostile, calls)}

if __name__ == "__main__":
    run("manager", BENCHMARKS)
