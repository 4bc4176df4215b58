"""Measures the memory and idle writes of `lws manager` on a real control plane, with pods of other owners.

Prints the facts of the machine and one JSON line per measurement; needs the binaries of `tests/controlplane`.

    memory_alone, memory_beside   MiB resident of the leading manager, with no pods and with many unrelated ones
    at_rest                       the manager's requests in the API server's audit log in some minutes, with a hundred
                                  LeaderWorkerSets: writes, and separately renewals of the lease

    python -m bench.manager rest [--pods 5000] [--seconds 300]
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

import structlog
from bench.phases import SETTLE, USUAL_ELECTION
from bench.record import machine, report
from testkit.clusters.kubernetes import KubernetesCluster
from tests.controlplane import build
from tests.controlplane.audit import WRITES, Audit
from tests.controlplane.process import Plane, control_plane
from tests.integration.clusters.managed import set_up
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.installation import ACCOUNT
from tests.kubernetes.manager.world import InstalledCluster, opened

from kuberuntime.client.client import Client
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.resources import PODS

GROUPS = 100
AT_ONCE = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine()), flush=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with control_plane(assets, directory, flags=Audit(directory).flags(ACCOUNT)) as plane:
            asyncio.run(set_up(KubernetesCluster(plane.kubeconfig)))
            asyncio.run(measure(plane, directory, options.pods, options.seconds))


async def measure(plane: Plane, directory: Path, pods: int, seconds: float) -> None:
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
        await space.create_groups(f"web-{index}", replicas=1, size=2)
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
