"""Managers at scale on a real control plane with kwok, in the forms in which others publish theirs.

    python -m bench.scale [rows] [groups] [arrivals] [many] [--managers ours go] [--runs N] …

    rows      one LeaderWorkerSet of 100 groups x 4: created, its worker image rolled (maxUnavailable 25 %), a worker deleted
              in 20 groups, no replicas; then 100 LeaderWorkerSets of 1 x 2
    groups    500 groups x 2: all pods created, ready, half a minute at rest, to zero, deleted; then cycles from 250 groups
              to 500 and back (`--groups`, `--cycles`)
    arrivals  LeaderWorkerSets that arrive at a rate (`--sets 100 --pods 600 --rate 5`): from creation to Ready, P50, P90, P99
    many      2,000 LeaderWorkerSets of 5 pods (`--many`): seconds, and the manager's memory, also per LeaderWorkerSet

Each line has seconds, and of the manager's process its processor time, resident memory and, by the API server's audit log,
its writes (events and statuses among them; renewals of its lease not). With `go`, the Go manager's controllers run in the
same control plane, and a manager of ours that never leads serves the webhooks: its own are not in the Go manager's numbers.
Nodes, rates and sizes stand in the lines; control plane, scheduler, kwok and manager share the cores of the machine.
Needs the binaries of `tests/controlplane`; for `go`, `python -m tests.packages.build lws`.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog
from bench.manager import SETTLE, USUAL_ELECTION
from bench.record import Line, machine, medians, report
from tests.controlplane import build
from tests.controlplane.audit import Audit
from tests.controlplane.process import Plane, control_plane
from tests.integration.clusters import objects
from tests.integration.clusters.cluster import NODES
from tests.integration.clusters.kubernetes import KubernetesCluster, build_node, set_up
from tests.integration.manager.groups import Space
from tests.integration.manager.installation import ACCOUNT, write_kubeconfig
from tests.integration.manager.replicas import until
from tests.integration.manager.world import World, opened
from tests.parity.gomanager import go_manager

from kuberuntime.client.transport import Request
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from kuberuntime.objects.resources import LEASES, PODS, STATEFULSETS
from kuberuntime.objects.resources import NODES as NODE_RESOURCE
from leaderworkerset.api import labels
from leaderworkerset.api.metadata import LEASE
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.install.installsettings import NAMESPACE

POLL = 0.2
LIMIT = 1800.0
"""Seconds in which a phase must end; one that does not ends the run with an error."""

STEADY = 30.0
AT_ONCE = 32
PODS_PER_NODE = 110
QUARTER: Line = {"maxUnavailable": "25%"}


@dataclass
class Bench:
    """A manager of one run, its process, and what was measured of it."""

    world: World
    space: Space
    manager: str
    run: int
    process: int
    lines: list[Line]

    @asynccontextmanager
    async def phase(self, measurement: str, **facts: Any) -> AsyncIterator[Line]:
        """Measure what happens within the context; whoever enters may add numbers to the line."""
        mark, cpu, begun = self.world.audit.mark(), self.cpu_seconds(), time.monotonic()
        more: Line = {}
        yield more
        seconds = time.monotonic() - begun
        writes = self.world.writes(mark)
        line = {
            "seconds": round(seconds, 2),
            "cpu_seconds": round(self.cpu_seconds() - cpu, 2),
            "writes": sum(writes.values()),
            "event_writes": sum(count for write, count in writes.items() if "events" in write),
            "status_writes": sum(count for write, count in writes.items() if write.endswith("/status")),
            "mebibytes": self.resident_mebibytes(),
        }
        line |= more
        report(measurement, server=self.manager, run=self.run, **facts, **line, kinds=writes)
        self.lines.append({"measurement": measurement, "server": self.manager, "run": self.run, **line})

    def cpu_seconds(self) -> float:
        """Return the processor time that the manager has used."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mebibytes(self) -> float:
        """Return the memory that it has now."""
        found = Path(f"/proc/{self.process}/statm").read_text().split()[1]
        return round(int(found) * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)

    async def create(self, name: str, replicas: int, size: int, rollout: Line | None = None) -> None:
        """Create a LeaderWorkerSet."""
        lws = objects.lws(name, replicas=replicas, size=size, rollout=rollout)
        lws["metadata"]["namespace"] = self.space.namespace
        await self.space.client.create(LEADERWORKERSETS, lws)

    async def whole(self, name: str, replicas: int) -> None:
        """Wait until the status says that so many groups are ready and up to date."""

        async def holds() -> bool:
            lws = await self.space.client.get(LEADERWORKERSETS, ObjectKey(self.space.namespace, name))
            status = meta.status(lws)
            counts = {int(status.get(field) or 0) for field in ("replicas", "readyReplicas", "updatedReplicas")}
            return counts == {replicas} and status.get("observedGeneration") in (None, meta.generation(lws))

        await until(holds, *self.world.replicas, seconds=LIMIT, poll=POLL)

    async def pods(self, count: int) -> None:
        """Wait until there are so many pods."""

        async def holds() -> bool:
            return await self.count() == count

        await until(holds, *self.world.replicas, seconds=LIMIT, poll=POLL)

    async def count(self) -> int:
        """Return how many pods there are, without reading them."""
        request = Request("GET", PODS.path(self.space.namespace), (("limit", "1"),), {}, b"")
        found = msgspec.json.decode((await self.space.client.send(request)).body)
        return len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0)


async def rows(bench: Bench, _: argparse.Namespace) -> None:
    """Measure the rows of the table in docs/explanation/performance.md."""
    client, namespace = bench.space.client, bench.space.namespace
    async with bench.phase("100 x 4 created"):
        await bench.create("web", 100, 4, QUARTER)
        await bench.whole("web", 100)
    made = (await client.list(STATEFULSETS, namespace=namespace)).items
    patch = {"spec": {"leaderWorkerTemplate": {"workerTemplate": objects.pod_template("app:2")}}}
    async with bench.phase("100 x 4 rolled, 25 %"):
        await client.patch(LEADERWORKERSETS, ObjectKey(namespace, "web"), patch, kind="merge")
        await asyncio.sleep(1)  # until then the status may be the one before
        await bench.whole("web", 100)
    async with bench.phase("a worker deleted in 20 of 100 groups"):
        old = {f"web-{group}-1" for group in range(20)}
        uids = {meta.uid(pod) for pod in (await client.list(PODS, namespace=namespace)).items if meta.name(pod) in old}
        for name in sorted(old):
            await client.delete(PODS, ObjectKey(namespace, name))

        async def are_replaced() -> bool:
            found = (await client.list(PODS, namespace=namespace)).items
            return len(found) == 400 and not uids & {meta.uid(pod) for pod in found}

        await until(are_replaced, *bench.world.replicas, seconds=LIMIT, poll=POLL)
        await bench.whole("web", 100)
    async with bench.phase("100 x 4 to none"):
        await bench.space.scale("web", 0)
        await bench.pods(0)
    async with bench.phase("100 sets of 1 x 2 created"):
        names = [f"small-{index}" for index in range(100)]
        await in_turn(names, lambda name: bench.create(name, 1, 2))
        for name in names:
            await bench.whole(name, 1)
    await floor(bench, made)


async def floor(bench: Bench, made: list[JSONObject]) -> None:
    """Create the StatefulSets of a LeaderWorkerSet at once, without it and its labels: no manager can be sooner than that."""
    alone = Space(bench.space.client, f"{bench.space.namespace}-floor")
    await alone.open()
    renamed = msgspec.json.decode(msgspec.json.encode(made).replace(labels.PREFIX.encode(), b"bench.example.com/"))
    names = {meta.name(one): one for one in renamed}

    async def create(name: str) -> None:
        metadata = {"name": name, "namespace": alone.namespace, "labels": meta.labels(names[name])}
        obj = {"apiVersion": STATEFULSETS.api_version, "kind": STATEFULSETS.kind, "metadata": metadata}
        await alone.client.create(STATEFULSETS, obj | {"spec": meta.spec(names[name])})

    async def are_ready() -> bool:
        found = (await alone.client.list(STATEFULSETS, namespace=alone.namespace)).items
        return all(meta.status(one).get("readyReplicas") == meta.spec(one)["replicas"] for one in found)

    async with bench.phase("floor of 100 x 4 created: its StatefulSets alone"):
        await in_turn(list(names), create)
        await until(are_ready, *bench.world.replicas, seconds=LIMIT, poll=POLL)
    for name in names:
        await alone.client.delete(STATEFULSETS, ObjectKey(alone.namespace, name), propagation="Background")


async def groups(bench: Bench, options: argparse.Namespace) -> None:
    """Measure one large LeaderWorkerSet of groups of two, and cycles of scaling."""
    count = options.groups
    facts = {"groups": count, "pods": 2 * count}
    async with bench.phase("groups: created", **facts) as line:
        begun = time.monotonic()
        await bench.create("web", count, 2)
        await bench.pods(2 * count)
        line["created_seconds"] = round(time.monotonic() - begun, 2)
        await bench.whole("web", count)
    async with bench.phase("groups: at rest", **facts):
        await asyncio.sleep(STEADY)
    async with bench.phase("groups: to none", **facts):
        await bench.space.scale("web", 0)
        await bench.pods(0)
    await bench.space.scale("web", count // 2)
    await bench.whole("web", count // 2)
    for cycle in range(options.cycles):
        for phase, replicas in (("grows", count), ("shrinks", count // 2)):
            async with bench.phase(f"groups: {phase}", cycle=cycle, **facts):
                await bench.space.scale("web", replicas)
                await bench.pods(2 * replicas)
                await bench.whole("web", replicas)
    async with bench.phase("groups: deleted", **facts):
        await bench.space.client.delete(LEADERWORKERSETS, ObjectKey(bench.space.namespace, "web"))
        await bench.pods(0)


async def arrivals(bench: Bench, options: argparse.Namespace) -> None:
    """Let sets arrive at a rate; measure each from its creation to Ready, to the fifth of a second of polling."""
    count, replicas = options.sets, options.pods // 2
    begun: dict[str, float] = {}
    took: dict[str, float] = {}
    facts = {"sets": count, "pods_each": 2 * replicas, "arrivals_per_second": options.rate}
    async with bench.phase("arrivals: all ready", **facts) as line:
        waiting = asyncio.create_task(follow(bench, replicas, count, begun, took))
        start = time.monotonic()
        for index in range(count):
            await asyncio.sleep(max(0.0, start + index / options.rate - time.monotonic()))
            begun[f"web-{index}"] = time.monotonic()
            await bench.create(f"web-{index}", replicas, 2)
        await waiting
        shares = statistics.quantiles(took.values(), n=100, method="inclusive")
        line |= {f"p{share}_seconds": round(shares[share - 1], 2) for share in (50, 90, 99)}


async def follow(bench: Bench, replicas: int, count: int, begun: dict[str, float], took: dict[str, float]) -> None:
    """Note when each set is ready, until all are."""

    async def all_are() -> bool:
        for lws in (await bench.space.client.list(LEADERWORKERSETS, namespace=bench.space.namespace)).items:
            name = meta.name(lws)
            if name not in took and meta.status(lws).get("readyReplicas") == replicas:
                took[name] = time.monotonic() - begun[name]
        return len(took) == count

    await until(all_are, *bench.world.replicas, seconds=LIMIT, poll=POLL)


async def many(bench: Bench, options: argparse.Namespace) -> None:
    """Create many sets of five pods in two steps; the memory between them is what each more costs."""
    before = 0
    memory: dict[int, float] = {}
    for count in (options.many // 10, options.many):
        async with bench.phase("many: all ready", sets=count, pods=5 * count) as line:
            names = [f"web-{index}" for index in range(before, count)]
            await in_turn(names, lambda name: bench.create(name, 1, 5))
            for name in names:
                await bench.whole(name, 1)
            await asyncio.sleep(SETTLE)
            memory[count] = line["mebibytes"] = bench.resident_mebibytes()
            if before:
                line["kibibytes_per_set"] = round(1024 * (memory[count] - memory[before]) / (count - before), 1)
        before = count


async def in_turn(names: list[str], create: Callable[[str], Coroutine[Any, Any, None]]) -> None:
    """Create objects, some at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> None:
        async with gate:
            await create(name)

    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(one(name))


FORMS = {"rows": rows, "groups": groups, "arrivals": arrivals, "many": many}


@asynccontextmanager
async def ours(world: World, name: str) -> AsyncIterator[int]:
    """Run a manager of ours that leads."""
    replica = await world.start(name, leaderElection=USUAL_ELECTION)
    await world.await_master(replica)
    yield replica.process.pid


@asynccontextmanager
async def theirs(world: World, name: str) -> AsyncIterator[int]:
    """Run the Go manager, and one of ours that serves webhooks and never leads: somebody holds its lease."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "bench", "leaseDurationSeconds": 86400, "acquireTime": now, "renewTime": now}
    lease = {"metadata": {"name": LEASE, "namespace": NAMESPACE}, "spec": spec}
    await world.client.create(LEASES, {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **lease})
    await world.start(name, leaderElection=USUAL_ELECTION)
    kubeconfig = world.directory / f"{name}-go.kubeconfig"
    await write_kubeconfig(world.client, world.plane.kubeconfig, kubeconfig)
    async with go_manager(kubeconfig, world.directory) as process:
        yield process.pid


MANAGERS = {"ours": ours, "go": theirs}


def main() -> None:
    """Start a control plane, measure all managers in each run, in turn; print raw numbers and medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", choices=[*FORMS, []], default=list(FORMS))
    parser.add_argument("--managers", nargs="+", choices=list(MANAGERS), default=["ours"])
    for name, default in (("runs", 1), ("groups", 500), ("cycles", 10), ("sets", 100), ("pods", 600), ("many", 2000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=5.0)
    parser.add_argument("--nodes", type=int, default=100, help=f"kwok nodes of {PODS_PER_NODE} pods each")
    options = parser.parse_args()
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine() | {"nodes": options.nodes}), flush=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with control_plane(assets, directory, flags=Audit(directory).flags(ACCOUNT)) as plane:
            for line in medians(asyncio.run(measure(plane, directory, options))):
                print(json.dumps({"median": line}), flush=True)


async def measure(plane: Plane, directory: Path, options: argparse.Namespace) -> list[Line]:
    """Measure each form with each manager in each run; return all lines."""
    lines: list[Line] = []
    await set_up(KubernetesCluster(plane.kubeconfig))
    for form in options.forms:
        for run in range(options.runs):
            for manager in options.managers:
                async with opened(plane, directory) as world:
                    await add_nodes(world, options.nodes)
                    space = Space(world.client, f"{form}-{manager}-{run}")
                    await space.open()
                    async with MANAGERS[manager](world, f"{form}-{manager}-{run}") as process:
                        await asyncio.sleep(SETTLE)
                        bench = Bench(world, space, manager, run, process, lines)
                        await FORMS[form](bench, options)
                        await clear(bench)
    return lines


async def add_nodes(world: World, count: int) -> None:
    """Create the nodes beyond those that are there."""
    present = len((await world.client.list(NODE_RESOURCE)).items)
    for index in range(max(present, NODES), count):
        await world.client.create(NODE_RESOURCE, build_node(index))


async def clear(bench: Bench) -> None:
    """Delete all sets and wait until their pods are gone."""
    for lws in (await bench.space.client.list(LEADERWORKERSETS, namespace=bench.space.namespace)).items:
        await bench.space.client.delete(LEADERWORKERSETS, meta.key(lws), propagation="Background")
    await bench.pods(0)


if __name__ == "__main__":
    main()
