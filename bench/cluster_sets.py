"""Measures the writes and the CPU time per DisaggregatedSet, and the writes when idle.

    python -m bench.cluster sets [--sets 100] [--seconds 30]

Sets of 2 roles, 2 groups each, of 2 pods. The first part runs in a simulated cluster, which knows the author of each
write. It counts the writes of the manager per set until all sets are available, in five minutes at rest, and during a
rollout of another image. `own` are writes to the sets and to the LeaderWorkerSets of their roles; `all` also includes
services, and the writes for each LeaderWorkerSet. Events are not counted. The second part runs in a cluster of stub
pods. It measures the processor time of the whole cluster per set, and the writes to its store at rest.
"""

import argparse
import asyncio
import re
import time
from pathlib import Path
from typing import Final

import yaml
from bench.processes import cpu_seconds, local_cluster, revision
from bench.record import report
from tests.disaggregated import disaggregatedset_object, role, with_image
from tests.simulation.cluster import NAMESPACE, Settings, SimulatedCluster, simulate

from kuberuntime.access import kubeconfig
from kuberuntime.client.client import Client
from kuberuntime.client.http import HTTPTransport
from kuberuntime.objects import meta
from kuberuntime.objects.meta import JSONObject, ObjectKey
from leaderworkerset.api.resources import DISAGGREGATED_SETS

OWN: Final = re.compile(
    r"disaggregatedsets/|(POST|PATCH|DELETE) .*/leaderworkersets[^ ]*(?<!/status)$|-prv$|/services$"
)
REST: Final = 300.0
POLL: Final = 1.0
"""The interval in seconds between two lists of the sets. Each list needs a few milliseconds of CPU time."""

LIMIT: Final = 1800.0
QUIET: Final = 10.0


def the_set(index: int, image: str = "app:1") -> JSONObject:
    """Return a DisaggregatedSet in the form that a user writes."""
    obj = disaggregatedset_object([role(name, 2, size=2) for name in ("prefill", "decode")])
    metadata = {"name": f"split-{index}", "namespace": NAMESPACE}
    return obj | {"metadata": metadata, "spec": obj["spec"] | with_image(obj, image)}


def count_writes(sets: int) -> None:
    """Simulate the sets, and print the number of manager writes."""

    async def scenario(world: SimulatedCluster) -> None:
        for index in range(sets):
            await world.client.create(DISAGGREGATED_SETS, the_set(index))
        await available(world)
        report_writes(world, "created", 0.0, sets)
        start = world.clock.monotonic()
        await asyncio.sleep(REST)
        report_writes(world, "at rest", start, sets)
        start = world.clock.monotonic()
        for index in range(sets):
            patch = {"spec": with_image(the_set(index), "app:2")}
            await world.client.patch(DISAGGREGATED_SETS, ObjectKey(NAMESPACE, f"split-{index}"), patch, kind="merge")
        await available(world)
        report_writes(world, "rolled", start, sets)

    simulate(scenario, Settings())


async def available(world: SimulatedCluster) -> None:
    """Wait until there are no more writes. Raise an error if a set is not available."""
    await world.at_rest()
    for obj in await world.objects(DISAGGREGATED_SETS):
        assert meta.is_condition_true(obj, "Available"), meta.status(obj)


def report_writes(world: SimulatedCluster, phase: str, since: float, sets: int) -> None:
    """Print the number of manager writes since this time."""
    writes = [entry for entry in world.trace.of("manager-0") if entry.at >= since]
    own = [entry for entry in writes if OWN.search(f"{entry.verb} {entry.object}")]
    report(
        "sets",
        phase=phase,
        sets=sets,
        writes_own_per_set=round(len(own) / sets, 2),
        writes_all_per_set=round(len(writes) / sets, 2),
    )


def measure_cluster(sets: int, seconds: float) -> None:
    """Run a cluster of stub pods. Print its CPU time, and its writes when it is idle."""
    with local_cluster("--stub") as cluster:
        for phase, image in (("created", "app:1"), ("rolled", "app:2")):
            before, start = cpu_seconds(cluster.pid), time.perf_counter()
            cluster.apply(yaml.safe_dump_all([the_set(index, image) for index in range(sets)]))
            asyncio.run(until_available(cluster.directory / "kubeconfig", sets))
            used = cpu_seconds(cluster.pid) - before
            report(
                "sets in a cluster",
                phase=phase,
                sets=sets,
                seconds=round(time.perf_counter() - start, 1),
                cluster_cpu_seconds=round(used, 2),
                cluster_cpu_milliseconds_per_set=round(1000 * used / sets, 1),
            )
        at_rest(cluster.pid, cluster.home, sets, seconds)


async def until_available(path: Path, sets: int) -> None:
    """Wait until every set is available with its current spec."""
    client = Client(HTTPTransport(kubeconfig.load({}, kubeconfig=str(path)), user_agent="bench/1"))
    deadline = time.monotonic() + LIMIT
    while True:
        live_sets = (await client.list(DISAGGREGATED_SETS, namespace=NAMESPACE)).items
        if len(live_sets) == sets and all(map(is_available, live_sets)):
            await client.close()
            return
        if time.monotonic() > deadline:
            raise SystemExit(f"the sets are not available within {LIMIT:.0f} s")
        await asyncio.sleep(POLL)


def is_available(obj: JSONObject) -> bool:
    """Return whether a set is available, and no part of it is in a rollout."""
    status = meta.status(obj)
    return status.get("observedGeneration") == meta.generation(obj) and meta.is_condition_true(obj, "Available")


def at_rest(pid: int, directory: Path, sets: int, seconds: float) -> None:
    """Print the activity of an idle cluster with these sets."""
    waited = until_quiet(directory)
    version, before = revision(directory), cpu_seconds(pid)
    time.sleep(seconds)
    report(
        "sets in a cluster",
        phase="at rest",
        sets=sets,
        seconds=seconds,
        seconds_until_quiet=waited,
        writes=revision(directory) - version,
        cpu_percent_of_a_core=round(100 * (cpu_seconds(pid) - before) / seconds, 2),
    )


def until_quiet(directory: Path) -> float:
    """Wait until there are no writes for ten seconds, because a rollout can cause late events.

    Return the waiting time.
    """
    start, version = time.monotonic(), -1
    while version != (version := revision(directory)):
        if time.monotonic() - start > LIMIT:
            raise SystemExit(f"writes have not stopped within {LIMIT:.0f} s")
        time.sleep(QUIET)
    return round(time.monotonic() - start, 1)


def main() -> None:
    """Measure both variants, and print raw data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()
    count_writes(options.sets)
    measure_cluster(options.sets, options.seconds)
