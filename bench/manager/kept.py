"""Measures the memory of a starting `lws manager` with stored pods, on the embedded API server.

    python -m bench.manager kept [--pods 0 400 10000] [--source NAME=DIRECTORY ...] [--environment NAME=VALUE ...]

The LeaderWorkerSets are copies of a ready set of one group of five pods. Only the controllers of the manager run. Each line
has MiB of the process by `smaps_rollup`, half a minute after it is ready, which hardly depend on the load of the machine. `--source` compares source trees, `--environment`
sets variables of the process. About a minute for each line.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import structlog
from bench.manager.memory import OWN, python_path
from bench.phases import USUAL_ELECTION
from bench.record import machine, report
from testkit.clusters.embedded import EmbeddedCluster
from tests.integration.clusters import objects
from tests.kubernetes.manager.deployed import deployed
from tests.kubernetes.manager.replicas import Replica, until

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

KINDS: Final = (LEADERWORKERSETS, STATEFULSETS, PODS, SERVICES, CONTROLLER_REVISIONS)
NAME: Final = "webseed"
SIZE: Final = 5
SETTLE: Final = 30.0
UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MEASURED: Final = ("Rss", "Pss", "Anonymous")


def main() -> None:
    """Measure each number of pods with each source tree, and print raw data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
            work = partial(measure, seed=seed, pods=pods, tree=tree, environment=environment)
            numbers = asyncio.run(in_directory(work))
            report("kept", server=source, pods=pods, environment=environment, **numbers)


async def in_directory(work: Any) -> Any:
    """Return the result of some work in a temporary directory."""
    with tempfile.TemporaryDirectory() as name:
        return await work(Path(name))


async def grow(directory: Path) -> str:
    """Return the objects of a ready LeaderWorkerSet and their plurals, as JSON."""
    clock = SystemClock()
    settings = Settings(name="seed", directory=directory, keep=False)
    async with serving(settings, clock) as cluster, workloads.working(cluster, SimulatedRunner(run_forever)):
        client, key = cluster.client("seed"), ObjectKey("default", NAME)
        async with lwsmanager.webhooks(client, clock), lwsmanager.controllers(client, clock):
            lws = objects.lws(NAME, replicas=1, size=SIZE)
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


async def measure(
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
        copy(cluster.api.backend.store, seed, pods // SIZE)
        await manager.start()
        await asyncio.sleep(SETTLE)
        return memory(replica.process.pid)


def memory(pid: int) -> dict[str, float]:
    """Return the memory of a process, in MiB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kibibytes = {name: re.findall(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)[0] for name in MEASURED}
    return {f"{name.lower()}_mebibytes": round(int(kib) / 1024, 1) for name, kib in kibibytes.items()}
