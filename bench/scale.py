"""Measures managers at scale on a real control plane with kwok, in the format of published benchmarks.

    python -m bench.scale [created] [rows] [groups] [arrivals] [many] [--managers ours go bare] [--runs N] …

    created   one LeaderWorkerSet of 100 groups x 4; the first of the rows
    rows      one LeaderWorkerSet of 100 groups x 4: created, its worker image rolled (maxUnavailable 25 %), a worker deleted
              in 20 groups, no replicas, then 100 LeaderWorkerSets of 1 x 2
    groups    500 groups x 2: all pods created, ready, half a minute at rest, rolled, a worker deleted in a fifth, to zero,
              deleted, then cycles from 250 groups to 500 and back (`--groups`, `--cycles`)
    arrivals  LeaderWorkerSets that arrive at a rate (`--sets 100 --pods 600 --rate 5`): from creation to Ready, P50, P90, P99
    slow      20 groups of 2 rolled a quarter at a time, whose pods take 20 s to start: its time as a share of four waves
    reviews   300 admissions of pods a second, for 20 s: P50 and P99 of the answers
    start     the seconds in which a manager starts with 100 sets, and takes over from an ending manager
    month     8 nodes emptied one after another under 4 groups of 4: drained, tainted, preempted, lost, in a rollout with surge,
              with an autoscaler, with a manager that is killed twice, and without leases
    many      2,000 LeaderWorkerSets of 5 pods (`--many`): seconds, and the manager's memory, also per LeaderWorkerSet
    capacity  LeaderWorkerSets of 4 groups x 8 (`--sets`): also events of watches, and processor time and memory of the
              control plane. Then the manager is killed, and restarts with all objects

Each line has seconds, and of the manager's process its processor time, resident memory and, by the API server's audit
log, its writes (with events and statuses, without renewals of its lease). With `go`, the Go manager does the same in
the same control plane, with its own webhooks, whose certificate is an RSA key as in its own secret (R-CERT-1). With `policy`, kube-apiserver admits pods, not the webhook. With `bare`, a process does the least that a manager must do (`bench/bare.py`): a lower bound of `created`, `rows`, `groups`
and `many`. Nodes, rates and sizes stand in the lines; control plane, scheduler, kwok and manager share the cores of the
machine. Needs the binaries of `tests/controlplane`; for `go`, `python -m tests.kubernetes.programs.build lws`.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog
from bench.forms import FORMS
from bench.maintenance import SCENARIOS
from bench.phases import SETTLE, USUAL_ELECTION, Bench
from bench.record import Line, machine, medians
from testkit.clusters.cluster import NODES
from testkit.clusters.kubernetes import KubernetesCluster, build_node
from tests.controlplane import build
from tests.controlplane.audit import Audit
from tests.controlplane.process import Plane, control_plane, free_ports
from tests.integration.clusters.managed import set_up
from tests.kubernetes.manager.admission import start_with, until_evaluated
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.installation import ACCOUNT, CONFIGURATIONS, trust, write_certificate, write_kubeconfig
from tests.kubernetes.manager.replicas import Replica
from tests.kubernetes.manager.world import InstalledCluster, opened
from tests.parity.gomanager import CERTIFICATES, go_manager

from kuberuntime.client.client import Client
from kuberuntime.objects import meta
from kuberuntime.objects.resources import NODES as NODE_RESOURCE
from leaderworkerset.api.resources import LEADERWORKERSETS
from leaderworkerset.core.admission.podpolicy import NOT_A_MEMBER
from leaderworkerset.webhooks import certificates
from leaderworkerset.webhooks.spec import NOTHING_TO_CHECK

PODS_PER_NODE = 110

GATES = "StaleControllerConsistencyStatefulSet=false"
"""The feature gates of the control plane.

Since 1.36, the StatefulSet controller skips an object until its cache has the controller's own last write. All its
retries share ten a second. After a rollout of hundreds of groups, a retry waits for minutes, whichever manager runs.
"""


@dataclass(frozen=True)
class Running:
    """The process of a manager, the port of its webhooks, and a function that restarts it after a delay."""

    process: int
    webhooks: int
    replace: Callable[[float], Awaitable[int]]


@asynccontextmanager
async def ours(world: InstalledCluster, name: str, *, elects: bool) -> AsyncIterator[Running]:
    """Run a manager of this project that is the leader."""
    replica = await world.start(name, leaderElection=USUAL_ELECTION if elects else {"leaderElect": False})
    if elects:
        await world.await_master(replica)
    yield running(replica)


def running(replica: Replica) -> Running:
    """Return a manager of this project, which is ready when its restart returns."""

    async def replace(absence: float) -> int:
        replica.kill()
        await asyncio.sleep(absence)
        replica.start()
        await replica.await_ready()
        return replica.process.pid

    return Running(replica.process.pid, replica.webhooks, replace)


@asynccontextmanager
async def by_policy(world: InstalledCluster, name: str, *, elects: bool) -> AsyncIterator[Running]:
    """Run a manager of this project, with a policy with which kube-apiserver admits pods."""
    election = USUAL_ELECTION if elects else {"leaderElect": False}
    replica = await start_with(world, name, leaderElection=election, podAdmission="Policy")
    probed = await CheckedNamespace(world.client, f"{name}-probe").open()
    await until_evaluated(world.client, probed.namespace)
    yield running(replica)


@asynccontextmanager
async def theirs(world: InstalledCluster, name: str, *, elects: bool) -> AsyncIterator[Running]:
    """Run the Go manager, without a lease."""
    del elects
    kubeconfig, port = await prepare(world, name)
    await call_all_webhooks(world.client)
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(go_manager(kubeconfig, world.directory, port))

        async def replace(absence: float) -> int:
            process.kill()
            await asyncio.sleep(absence)
            return (await stack.enter_async_context(go_manager(kubeconfig, world.directory, port))).pid

        yield Running(process.pid, port, replace)


@asynccontextmanager
async def bare(world: InstalledCluster, name: str, *, elects: bool) -> AsyncIterator[Running]:
    """Run the minimal manager (`bench/bare.py`), without a lease."""
    del elects
    kubeconfig, port = await prepare(world, name)
    words = (str(kubeconfig), str(world.directory / CERTIFICATES), str(port))
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.bare", *words)

    async def replace(_: float) -> int:
        raise NotImplementedError("this manager is not killed")

    try:
        yield Running(process.pid, port, replace)
        assert process.returncode is None, process.returncode
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def prepare(world: InstalledCluster, name: str) -> tuple[Path, int]:
    """Write a kubeconfig, and a certificate that API servers trust for the webhooks.

    Return the kubeconfig and the port.
    """
    authority = certificates.create_authority(datetime.now(UTC), algorithm="rsa")
    write_certificate(world.directory / CERTIFICATES, authority, algorithm="rsa")
    await trust(world.client, authority.certificate)
    kubeconfig = world.directory / f"{name}.kubeconfig"
    await write_kubeconfig(world.client, world.plane.kubeconfig, kubeconfig)
    (port,) = free_ports(1)
    world.balancer.backends.append(port)
    return kubeconfig, port


async def call_all_webhooks(client: Client) -> None:
    """Enable the webhook that this project declares but does not use, as in the upstream configuration."""
    for resource in CONFIGURATIONS:
        for configuration in (await client.list(resource)).items:
            for webhook in configuration["webhooks"]:
                conditions = webhook.get("matchConditions") or []
                webhook["matchConditions"] = [condition for condition in conditions if condition not in OURS]
            await client.update(resource, configuration)


OURS = (NOTHING_TO_CHECK, NOT_A_MEMBER)
"""The match conditions that the upstream configuration does not have."""

MANAGERS = {"ours": ours, "policy": by_policy, "go": theirs, "bare": bare}


def main() -> None:
    """Start a control plane, measure all managers in each run, alternately, and print raw data and medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("forms", nargs="*", choices=[*FORMS, []], default=list(FORMS))
    parser.add_argument("--managers", nargs="+", choices=list(MANAGERS), default=["ours"])
    for name, default in (("runs", 1), ("groups", 500), ("cycles", 10), ("sets", 100), ("pods", 600), ("many", 2000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, default=5.0)
    parser.add_argument(
        "--scenarios",
        nargs="+",
        choices=list(SCENARIOS),
        default=[],
        help=("the parts of the month to run. If omitted, all parts are run"),
    )
    parser.add_argument("--nodes", type=int, default=100, help=f"kwok nodes of {PODS_PER_NODE} pods each")
    options = parser.parse_args()
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine() | {"nodes": options.nodes}), flush=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with control_plane(assets, directory, flags=Audit(directory).flags(ACCOUNT), gates=GATES) as plane:
            for line in medians(asyncio.run(measure(plane, directory, options))):
                print(json.dumps({"median": line}), flush=True)


async def measure(plane: Plane, directory: Path, options: argparse.Namespace) -> list[Line]:
    """Measure each form with each manager in each run, and return all lines."""
    lines: list[Line] = []
    await set_up(KubernetesCluster(plane.kubeconfig))
    for form in options.forms:
        for run in range(options.runs):
            for manager in options.managers:
                async with opened(plane, directory) as world:
                    await add_nodes(world, options.nodes)
                    space = CheckedNamespace(world.client, f"{form}-{manager}-{run}")
                    await space.open()
                    # A killed manager would wait for its own lease, and the Go manager runs without a lease.
                    elects = form not in {"month", "capacity"}
                    async with MANAGERS[manager](world, f"{form}-{manager}-{run}", elects=elects) as measured:
                        await asyncio.sleep(SETTLE)
                        process, port = measured.process, measured.webhooks
                        bench = Bench(world, space, manager, run, process, port, lines, measured.replace)
                        await FORMS[form](bench, options)
                        await clear(bench)
    return lines


async def add_nodes(world: InstalledCluster, count: int) -> None:
    """Create the missing nodes."""
    present = len((await world.client.list(NODE_RESOURCE)).items)
    for index in range(max(present, NODES), count):
        await world.client.create(NODE_RESOURCE, build_node(index))


async def clear(bench: Bench) -> None:
    """Delete all sets, and wait until their pods are deleted."""
    for lws in (await bench.space.client.list(LEADERWORKERSETS, namespace=bench.space.namespace)).items:
        await bench.space.client.delete(LEADERWORKERSETS, meta.key(lws), propagation="Background")
    await bench.pods(0)


if __name__ == "__main__":
    main()
