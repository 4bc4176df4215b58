"""What the manager writes, counted by kind in a simulated cluster: the same numbers on every machine.

    python -m bench.writes

One LeaderWorkerSet of 100 groups of 4 pods is created, rolled to another image (a quarter of the groups at once), and
scaled to none; then 100 of one group of 2 pods are created. Requests take 1 to 20 ms, the time of a program's start is
the simulated kubelet's. `reads` are requests that read, and watches. `packages/leaderworkerset/tests/simulation/test_writes.py` compares the counts
of smaller scenarios with limits.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from bench.record import report
from tests.simulation.cluster import Settings, World, simulate
from tests.simulation.workloads import SLOW, groups, template

Tell: TypeAlias = Callable[[str, float, Counter[str]], None]
"""Takes a phase, the seconds from its first write to its last, and how many there were of each kind."""


async def one_of_many(world: World, tell: Tell, count: int = 100) -> None:
    """Create, roll and empty one LeaderWorkerSet of many groups."""
    rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": "25%"}}
    phases = Phases(world, tell)
    await world.create(groups(replicas=count, size=4, rolloutStrategy=rolling))
    await world.ready()
    phases.end(f"created: {count} x 4")
    await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
    await world.ready()
    phases.end("rolled: 25 %")
    await world.edit(replicas=0)
    await world.at_rest()
    phases.end("replicas: 0")


async def many_of_one(world: World, tell: Tell, count: int = 100) -> None:
    """Create many small LeaderWorkerSets."""
    obj, phases = groups(replicas=1, size=2), Phases(world, tell)
    for index in range(count):
        await world.create(obj | {"metadata": obj["metadata"] | {"name": f"web-{index}"}})
    await world.at_rest()
    phases.end(f"created: {count} of 1 x 2")


class Phases:
    """Counts what the manager wrote, and how often it read, in one phase after the other."""

    def __init__(self, world: World, tell: Tell) -> None:
        self._world, self._tell = world, tell
        self._since = self._reads = 0
        self._manager = world.managers["manager-0"]

    def end(self, phase: str) -> None:
        """Tell the counts of the phase that ends."""
        entries = [
            one
            for one in self._world.trace.entries[self._since :]
            if one.actor == "manager-0" and "/leases" not in one.object
        ]
        found = Counter(kind(one.object) for one in entries)
        found["reads"] = self._manager.reads - self._reads
        self._tell(phase, entries[-1].at - entries[0].at, found)
        self._since, self._reads = len(self._world.trace.entries), self._manager.reads


def counted(scenario: Callable[[World, Tell], Awaitable[None]], tell: Tell) -> None:
    """Run a scenario."""

    async def run(world: World) -> None:
        await scenario(world, tell)

    simulate(run, Settings(managers=(SLOW,), others=SLOW))


def kind(path: str) -> str:
    """Return what is written at a path: the plural of its kind, or `status`."""
    if path.endswith("/status"):
        return "status"
    found = re.search(r"/namespaces/[^/]+/([^/]+)", path)
    return found[1] if found else path


def main() -> None:
    """Count, and print raw numbers."""

    def tell(phase: str, seconds: float, found: Counter[str]) -> None:
        writes = found.total() - found["reads"]
        report("writes", phase=phase, seconds=round(seconds, 2), writes=writes, **dict(sorted(found.items())))

    for scenario in (one_of_many, many_of_one):
        counted(scenario, tell)


if __name__ == "__main__":
    main()
