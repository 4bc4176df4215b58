"""Prints the differences between the objects of this manager and the recorded objects of the Go manager.

Run it with `python -m tests.parity`.

Names of clusters (`embedded`, `kubernetes`) may be given; without any it is both. Ends with 1 where anything differs.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.parity.clusters import CLUSTERS
from tests.parity.replay import load, replay

from leaderworkerset.manager import managerlog
from leaderworkerset.manager.managerlog import LogSettings


async def compare(name: str) -> int:
    """Replay all cases on one cluster, and print the differences. Return the number of differences."""
    with tempfile.TemporaryDirectory(prefix="lws-parity-") as directory:
        async with CLUSTERS[name](Path(directory)) as cluster, cluster.manager():
            cases = load()
            lines = await replay(cluster.client, cases)
    objects = sum(len(case["created"]) + len(case["edited"]) for case in cases)
    for line in lines:
        sys.stdout.write(f"{name}: {line}\n")
    sys.stdout.write(f"{name}: {len(cases)} cases, {objects} recorded objects, {len(lines)} differences\n")
    return len(lines)


def main() -> int:
    """Run the command-line interface."""
    managerlog.configure(LogSettings(level="error"))
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument("clusters", nargs="*", metavar="CLUSTER", help=f"any of {', '.join(CLUSTERS)}")
    names = parser.parse_args().clusters or list(CLUSTERS)
    if unknown := sorted({*names} - {*CLUSTERS}):
        parser.error(f"there is no cluster {', '.join(unknown)}: choose from {', '.join(CLUSTERS)}")
    return 1 if sum([asyncio.run(compare(name)) for name in names]) else 0


if __name__ == "__main__":
    sys.exit(main())
