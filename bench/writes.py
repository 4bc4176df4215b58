"""What the manager writes, counted by kind in a simulated cluster: the same numbers on every machine.

    python -m bench.writes

One LeaderWorkerSet of 100 groups of 4 pods is created, rolled to another image (a quarter of the groups at once), and
scaled to none; then 100 of one group of 2 pods are created. Requests take 1 to 20 ms, the time of a program's start is
the simulated kubelet's.
"""

import re
from collections import Counter

from bench.record import report
from tests.simulation.cluster import Settings, World, simulate
from tests.simulation.workloads import SLOW, groups, template


async def one_of_many(world: World) -> None:
    """Create, roll and empty one LeaderWorkerSet of many groups."""
    rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": "25%"}}
    await world.create(groups(replicas=100, size=4, rolloutStrategy=rolling))
    await world.ready()
    since = told(world, "created: 100 x 4", 0)
    await world.edit(leaderWorkerTemplate={"workerTemplate": template("app:2")})
    await world.ready()
    since = told(world, "rolled: 25 %", since)
    await world.edit(replicas=0)
    await world.at_rest()
    told(world, "replicas: 0", since)


async def many_of_one(world: World) -> None:
    """Create many small LeaderWorkerSets."""
    obj = groups(replicas=1, size=2)
    for index in range(100):
        await world.create(obj | {"metadata": obj["metadata"] | {"name": f"web-{index}"}})
    await world.at_rest()
    told(world, "created: 100 of 1 x 2", 0)


def told(world: World, phase: str, since: int) -> int:
    """Print what the manager wrote since a number of entries; return the number now."""
    entries = [one for one in world.trace.entries[since:] if one.actor == "manager-0" and "/leases" not in one.object]
    kinds = Counter(kind(one.object) for one in entries)
    seconds = round(entries[-1].at - entries[0].at, 2)
    report("writes", phase=phase, seconds=seconds, writes=len(entries), **dict(sorted(kinds.items())))
    return len(world.trace.entries)


def kind(path: str) -> str:
    """Return what is written at a path: the plural of its kind, or `status`."""
    if path.endswith("/status"):
        return "status"
    found = re.search(r"/namespaces/[^/]+/([^/]+)", path)
    return found[1] if found else path


def main() -> None:
    """Count, and print raw numbers."""
    for scenario in (one_of_many, many_of_one):
        simulate(scenario, Settings(managers=(SLOW,), others=SLOW))


if __name__ == "__main__":
    main()
