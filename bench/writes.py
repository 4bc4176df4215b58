"""Counts manager writes by kind in a simulated cluster. The counts do not depend on the machine.

    python -m bench.writes [--renew]

One LeaderWorkerSet of 100 groups of 4 pods is created, rolled to another image (a quarter of the groups at once), loses a
worker in a fifth of its groups, and is scaled to none; then 100 of one group of 2 pods are created. Requests take 1 to
20 ms, the time of a program's start is the simulated kubelet's. `reads` are requests that read, and watches.

A smaller run is a gate: `packages/leaderworkerset/tests/simulation/test_writes.py` compares its counts, and the calls of
the product's functions, with those of the last release in `bench/writes.json`. `--renew` writes that file: only for a
release, or if a change needs more on purpose.
"""

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Final, TypeAlias

import msgspec
from bench.record import report
from tests.simulation.cluster import Settings, SimulatedCluster, simulate
from tests.simulation.workloads import SLOW, groups, template

import leaderworkerset
from kuberuntime.objects.resources import PODS

ROOT: Final = Path(__file__).parents[1]
BASELINE: Final = Path(__file__).with_suffix(".json")
PRODUCT: Final = str(Path(leaderworkerset.__file__).parent)
GROUPS: Final = 10
SETS: Final = 5
"""The sizes for the gate."""

ROOM: Final = 1.1
"""The permitted excess of each count, plus two, because event order can cause an additional status."""

Tell: TypeAlias = Callable[[str, float, Counter[str]], None]
"""Receives a phase, the seconds from its first to its last write, and the number of writes by kind."""


async def one_of_many(world: SimulatedCluster, tell: Tell, count: int = 100) -> None:
    """Create, roll and scale down one LeaderWorkerSet with many groups."""
    rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": "25%"}}
    phases = Phases(world, tell)
    await world.create(groups(replicas=count, size=4, rolloutStrategy=rolling))
    await world.ready()
    phases.end(f"created: {count} x 4")
    await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
    await world.ready()
    phases.end("rolled: 25 %")
    for index in range(0, count, 5):
        await world.delete(f"web-{index}-1", PODS)
    await world.ready()
    phases.end("a worker deleted in a fifth")
    await world.edit(replicas=0)
    await world.at_rest()
    phases.end("replicas: 0")


async def many_of_one(world: SimulatedCluster, tell: Tell, count: int = 100) -> None:
    """Create many small LeaderWorkerSets."""
    obj, phases = groups(replicas=1, size=2), Phases(world, tell)
    for index in range(count):
        await world.create(obj | {"metadata": obj["metadata"] | {"name": f"web-{index}"}})
    await world.at_rest()
    phases.end(f"created: {count} of 1 x 2")


class Phases:
    """Counts the writes and reads of the manager in consecutive phases."""

    def __init__(self, world: SimulatedCluster, tell: Tell) -> None:
        self._world, self._tell = world, tell
        self._since = self._reads = 0
        self._manager = world.managers["manager-0"]

    def end(self, phase: str) -> None:
        """Report the counts of the completed phase."""
        entries = [
            entry
            for entry in self._world.trace.entries[self._since :]
            if entry.actor == "manager-0" and "/leases" not in entry.object
        ]
        counts = Counter(kind(entry.object) for entry in entries)
        counts["reads"] = self._manager.reads - self._reads
        self._tell(phase, entries[-1].at - entries[0].at, counts)
        self._since, self._reads = len(self._world.trace.entries), self._manager.reads


def counted(scenario: Callable[[SimulatedCluster, Tell], Awaitable[None]], tell: Tell) -> None:
    """Run a scenario."""

    async def run(world: SimulatedCluster) -> None:
        await scenario(world, tell)

    simulate(run, Settings(managers=(SLOW,), others=SLOW))


def kind(path: str) -> str:
    """Return the kind of a write by its path, which is the plural of its kind, or `status`."""
    if path.endswith("/status"):
        return "status"
    match = re.search(r"/namespaces/[^/]+/([^/]+)", path)
    return match[1] if match else path


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The gate counts of each phase, and their version."""

    version: str
    phases: Mapping[str, Mapping[str, int]]


def gate() -> Mapping[str, Mapping[str, int]]:
    """Return the gate counts from a new process, because hashes affect the order and caches affect the calls."""
    command = [sys.executable, "-m", "bench.writes", "--gate"]
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return msgspec.json.decode(child.stdout, type=dict[str, dict[str, int]])


def measure() -> dict[str, Counter[str]]:
    """Return the gate counts by phase, including the calls of the product's functions."""
    phases: dict[str, Counter[str]] = {}
    with counting_calls() as calls:

        def tell(phase: str, _seconds: float, counts: Counter[str]) -> None:
            phases[phase] = counts + calls
            calls.clear()

        counted(partial(one_of_many, count=GROUPS), tell)
        calls.clear()
        counted(partial(many_of_one, count=SETS), tell)
    return phases


@contextmanager
def counting_calls() -> Iterator[Counter[str]]:
    """Count the calls of the product's functions as `calls`.

    Comprehensions are not counted: they are calls on some versions of Python.
    """
    calls: Counter[str] = Counter()
    counts: dict[CodeType, bool] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in counts:
            counts[code] = code.co_filename.startswith(PRODUCT) and not code.co_name.startswith("<")
        if counts[code]:
            calls["calls"] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def excess(phases: Mapping[str, Mapping[str, int]], baseline: Baseline) -> list[str]:
    """Return the counts that exceed the permitted counts, as sentences."""
    return [
        f"{phase}: {number} {name}, but {before} in {baseline.version}"
        for phase, counts in phases.items()
        for name, number in sorted(counts.items())
        if number > max((before := baseline.phases.get(phase, {}).get(name, 0)) * ROOM, before + 2)
    ]


def renew() -> None:
    """Write the current counts as the counts of the last release."""
    phases = {phase: dict(sorted(counts.items())) for phase, counts in gate().items()}
    baseline = Baseline(version=leaderworkerset.__version__, phases=phases)
    BASELINE.write_bytes(msgspec.json.format(msgspec.json.encode(baseline)) + b"\n")


def main() -> None:
    """Count, and print raw data or write the gate file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--renew", action="store_true", help="write bench/writes.json")
    parser.add_argument("--gate", action="store_true", help="print the counts that the check compares")
    options = parser.parse_args()
    if options.renew:
        renew()
        return
    if options.gate:
        sys.stdout.write(msgspec.json.encode(measure()).decode())
        return

    def tell(phase: str, seconds: float, counts: Counter[str]) -> None:
        writes = counts.total() - counts["reads"]
        report("writes", phase=phase, seconds=round(seconds, 2), writes=writes, **dict(sorted(counts.items())))

    for scenario in (one_of_many, many_of_one):
        counted(scenario, tell)


if __name__ == "__main__":
    main()
