"""Measures the memory of `lws manager` on a real control plane by the number of its pods.

One manager creates all pods: its resident MiB before, at 400 and at 1,000 pods, and its peak; then a manager that is
started with these pods. Prints the facts of the machine and one JSON line per measurement, medians last; needs the
binaries of `tests/controlplane`.

    python -m bench.manager memory [--pods 400 1000] [--runs 3] [--source NAME=DIRECTORY ...]

With `--source`, the managers run from these source trees, in turn, on one control plane, for example before and after a
change.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from bench.phases import SETTLE, USUAL_ELECTION
from bench.record import machine, medians, report
from testkit.clusters.kubernetes import KubernetesCluster
from testkit.repository import ROOT
from tests.controlplane import build
from tests.controlplane.process import Plane, control_plane
from tests.integration.clusters.managed import set_up
from tests.kubernetes.manager.groups import CheckedNamespace
from tests.kubernetes.manager.replicas import Replica, until
from tests.kubernetes.manager.world import InstalledCluster, opened

from kuberuntime.objects import meta
from kuberuntime.objects.meta import ObjectKey
from kuberuntime.objects.resources import PODS
from leaderworkerset.api import labels
from leaderworkerset.api.resources import LEADERWORKERSETS

OWN = {"installed": ROOT}
SETS = 10
SIZE = 4
LIMIT = 600.0
"""The number of seconds in which the pods of one step must be ready."""


@dataclass(frozen=True)
class Measurement:
    """A manager of one source tree in one run, with its pods."""

    world: InstalledCluster
    space: CheckedNamespace
    source: str
    run: int
    lines: list[dict[str, Any]]

    def note(self, replica: Replica, measurement: str) -> None:
        """Report the memory of the process."""
        status = Path(f"/proc/{replica.process.pid}/status").read_text()
        now, most = (int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) / 1024 for name in ("VmRSS", "VmHWM"))
        numbers = {"server": self.source, "run": self.run, "mebibytes": round(now, 1), "most_mebibytes": round(most, 1)}
        report(measurement, **numbers)
        self.lines.append({"measurement": measurement, **numbers})


def main() -> None:
    """Start a control plane, measure all source trees alternately, and print raw data and medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, nargs="+", default=[400, 1000])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--source", action="append", default=[], metavar="NAME=DIRECTORY")
    options = parser.parse_args()
    sources = {name: Path(path).resolve() for name, _, path in (text.partition("=") for text in options.source)}
    assets = build.assets(lambda text: print(text, file=sys.stderr, flush=True))
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    print(json.dumps(machine()), flush=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with control_plane(assets, directory) as plane:
            asyncio.run(set_up(KubernetesCluster(plane.kubeconfig)))
            for line in medians(asyncio.run(measure(plane, directory, sources or OWN, options))):
                print(json.dumps(line), flush=True)


async def measure(
    plane: Plane, directory: Path, sources: Mapping[str, Path], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measure each source tree in each run, alternately, and return all lines."""
    lines: list[dict[str, Any]] = []
    for run in range(options.runs):
        for source, path in sources.items():
            async with opened(plane, directory) as world:
                space = CheckedNamespace(world.client, f"memory-{source}-{run}")
                await space.open()
                await follow(Measurement(world, space, source, run, lines), path, options.pods)
    return lines


async def follow(measured: Measurement, path: Path, steps: Sequence[int]) -> None:
    """Measure one manager while it creates pods, step by step, and a second manager that starts with all pods."""
    replica = await start(measured, "creating", path)
    measured.note(replica, "memory_at_rest")
    await create(measured.space)
    for pods in steps:
        await grow(measured.space, pods)
        await asyncio.sleep(SETTLE)
        measured.note(replica, f"memory_at_{pods}")
    replica.end()
    measured.world.balancer.backends.clear()
    measured.note(await start(measured, "found", path), f"memory_started_at_{steps[-1]}")
    await clear(measured.space)


def python_path(tree: Path) -> str:
    """Return the PYTHONPATH for a source tree, which is a workspace or an older tree with one `src`."""
    return ":".join(map(str, [*tree.glob("packages/*/src"), tree / "src"]))


async def start(measured: Measurement, name: str, path: Path) -> Replica:
    """Start a manager from a source tree, and wait until it is the leader and idle."""
    replica = await measured.world.prepare(f"{name}-{measured.source}-{measured.run}", leaderElection=USUAL_ELECTION)
    replica.environment["PYTHONPATH"] = python_path(path)
    replica.program = ("-Bu", str(path / "deploy" / "manager"))  # -I would ignore PYTHONPATH
    replica.start()
    measured.world.balancer.backends.append(replica.webhooks)
    await replica.await_ready()
    await measured.world.await_master(replica)
    await asyncio.sleep(SETTLE)
    return replica


async def create(space: CheckedNamespace) -> None:
    for index in range(SETS):
        await space.create_groups(f"web-{index}", replicas=0, size=SIZE)


async def grow(space: CheckedNamespace, pods: int) -> None:
    """Scale to this number of pods, and wait until all are ready."""
    groups = pods // (SETS * SIZE)
    for index in range(SETS):
        await space.scale(groups, f"web-{index}")

    async def are_ready() -> bool:
        await asyncio.sleep(1)
        listing = await space.client.list(LEADERWORKERSETS, namespace=space.namespace)
        return all(
            meta.status(lws).get("readyReplicas") == groups
            and meta.status(lws).get("observedGeneration") == meta.generation(lws)
            for lws in listing.items
        )

    await until(are_ready, seconds=LIMIT)


async def clear(space: CheckedNamespace) -> None:
    """Delete all objects, and wait until the pods are deleted."""
    for index in range(SETS):
        key = ObjectKey(space.namespace, f"web-{index}")
        await space.client.delete(LEADERWORKERSETS, key, propagation="Background")

    async def are_gone() -> bool:
        await asyncio.sleep(1)
        listing = await space.client.list(PODS, namespace=space.namespace, label_selector=labels.NAME, limit=1)
        return not listing.items

    await until(are_gone, seconds=LIMIT)
